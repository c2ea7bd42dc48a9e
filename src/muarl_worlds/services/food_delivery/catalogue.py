"""What the delivery service of the scenario deals in: restaurants with their dishes, cities and zones."""

from __future__ import annotations

RESTAURANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Lotus Garden": ("Thai", (
        "Pad Thai", "Green Curry", "Tom Yum Soup", "Mango Sticky Rice", "Chicken Satay", "Papaya Salad")),
    "Casa Brava": ("Mexican", (
        "Carnitas Tacos", "Black Bean Burrito", "Chicken Quesadilla", "Guacamole", "Corn Chowder", "Churros")),
    "Little Naples": ("Italian", (
        "Margherita Pizza", "Mushroom Risotto", "Lasagne", "Gnocchi with Pesto", "Caprese Salad", "Tiramisu")),
    "Spice Route": ("Indian", (
        "Butter Chicken", "Palak Paneer", "Lamb Vindaloo", "Garlic Naan", "Vegetable Samosas", "Mango Lassi")),
    "Kyoto Corner": ("Japanese", (
        "Salmon Nigiri", "Chicken Ramen", "Vegetable Tempura", "Beef Udon", "Miso Soup", "Mochi")),
    "The Burger Yard": ("American", (
        "Classic Cheeseburger", "Veggie Burger", "Sweet Potato Fries", "Onion Rings", "Cobb Salad", "Brownie")),
    "Olive and Thyme": ("Greek", (
        "Chicken Souvlaki", "Moussaka", "Greek Salad", "Spinach Pie", "Grilled Halloumi", "Baklava")),
    "Golden Wok": ("Chinese", (
        "Kung Pao Chicken", "Mapo Tofu", "Fried Rice", "Spring Rolls", "Hot and Sour Soup", "Sesame Balls")),
    "Beirut Express": ("Lebanese", (
        "Falafel Wrap", "Lamb Kofta", "Hummus Plate", "Fattoush", "Lentil Soup", "Rice Pudding")),
    "Saigon Street": ("Vietnamese", (
        "Beef Pho", "Banh Mi", "Summer Rolls", "Lemongrass Tofu", "Vermicelli Bowl", "Coconut Flan")),
    "Seoul Kitchen": ("Korean", (
        "Bibimbap", "Bulgogi", "Kimchi Stew", "Japchae", "Fried Chicken Wings", "Rice Cakes")),
    "Addis Table": ("Ethiopian", (
        "Doro Wat", "Lentil Stew", "Beef Tibs", "Injera Platter", "Shiro", "Honey Cake")),
    "Harbour Grill": ("Seafood", (
        "Fish and Chips", "Grilled Sea Bass", "Prawn Linguine", "Clam Soup", "Crab Cakes", "Lemon Tart")),
    "Green Bowl": ("Salads", (
        "Quinoa Bowl", "Caesar Salad", "Roasted Beet Salad", "Tomato Soup", "Avocado Toast", "Fruit Cup")),
}  # fmt: skip
DISHES = tuple(dish for _, dishes in RESTAURANTS.values() for dish in dishes)
LABELS = ("home", "work", "parents", "studio")
"""How saved addresses are called."""
CARDS = ("visa", "mastercard", "wallet", "gift card")
ZONES = ("north", "south", "east", "west")
VOCABULARY = {"restaurants": tuple(RESTAURANTS), "dishes": DISHES}
