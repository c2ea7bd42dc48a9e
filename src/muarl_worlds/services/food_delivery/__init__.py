"""A delivery service for food: orders, dishes and refunds."""
