"""A hotel: bookings, rooms and extras."""
