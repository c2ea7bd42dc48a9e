"""What generated shops are made of: products and their options, prices, ids. Their people: ``domains.people``.

All of it is our own. The lists are ordered: a small shop uses the front of each list, so that a tiny model's tokenizer
can hold every word and id of the tiny shop as one token (see recipes/tiny.py).
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence

from muarl_worlds.tau.people import number_pool

COLORS = ("red", "blue", "green", "black")
SIZES = ("small", "medium", "large", "jumbo")
MATERIALS = ("cotton", "wool", "linen", "silk")
WOODS = ("oak", "pine", "walnut", "maple")

PRODUCTS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "Mug": {"color": COLORS, "capacity": ("250ml", "350ml", "500ml")},
    "Lamp": {"size": SIZES, "bulb": ("warm", "daylight")},
    "Scarf": {"material": MATERIALS, "pattern": ("plain", "striped")},
    "Chair": {"wood": WOODS, "armrests": ("with armrests", "without armrests")},
    "Kettle": {"color": COLORS, "capacity": ("1 litre", "1.7 litres")},
    "Rug": {"size": SIZES, "weave": ("flat", "shaggy")},
    "Blanket": {"material": MATERIALS, "weight": ("light", "heavy")},
    "Desk": {"wood": WOODS, "drawers": ("two drawers", "four drawers")},
    "Backpack": {"color": COLORS, "volume": ("15 litres", "25 litres", "40 litres")},
    "Tent": {"size": SIZES, "seasons": ("three-season", "four-season")},
    "Curtain": {"material": MATERIALS, "length": ("160cm", "220cm")},
    "Shelf": {"wood": WOODS, "boards": ("three boards", "five boards")},
    "Umbrella": {"color": COLORS, "handle": ("straight", "curved")},
    "Vase": {"size": SIZES, "finish": ("matte", "glazed")},
    "Pillow": {"material": MATERIALS, "filling": ("foam", "down")},
    "Stool": {"wood": WOODS, "height": ("45cm", "65cm")},
    "Bicycle Helmet": {"color": ("white", "navy", "orange"), "size": ("S", "M", "L"), "visor": ("visor", "no visor")},
    "Wall Clock": {"dial": ("roman", "arabic", "blank"), "diameter": ("20cm", "30cm")},
    "Frying Pan": {"diameter": ("22cm", "26cm", "30cm"), "coating": ("ceramic", "steel", "iron")},
    "Board Game": {"theme": ("pirates", "space", "trains"), "players": ("2 players", "4 players", "6 players")},
    "Yoga Block": {"material": ("cork", "bamboo"), "pack": ("single", "pair")},
    "Desk Fan": {"power": ("usb", "mains"), "color": ("white", "grey"), "blades": ("3 blades", "5 blades")},
    "Rain Jacket": {"size": ("XS", "S", "M", "L"), "color": ("yellow", "navy"), "zipper": ("half zip", "full zip")},
    "Hiking Poles": {"material": ("carbon", "aluminium"), "length": ("110cm", "125cm", "140cm")},
    "Reading Light": {"mount": ("clip", "stand"), "battery": ("rechargeable", "replaceable")},
    "Cutting Board": {"material": ("beech", "bamboo", "plastic"), "size": ("small", "large")},
    "Picture Frame": {"format": ("10x15", "20x30", "30x40"), "color": ("gold", "white", "black")},
    "Soap Dispenser": {"material": ("glass", "steel"), "volume": ("250ml", "400ml")},
    "Travel Pillow": {"filling": ("memory foam", "microbeads"), "color": ("grey", "teal")},
    "Door Mat": {"size": ("40x60", "60x90"), "text": ("plain text", "welcome text")},
    "Phone Stand": {"material": ("wood", "aluminium"), "angle": ("fixed angle", "adjustable")},
    "Laundry Basket": {"volume": ("40 litres", "60 litres"), "lid": ("with lid", "without lid")},
    "Bath Towel": {"size": ("70x140", "100x150"), "color": ("white", "sand", "teal")},
    "Garden Hose": {"length": ("10m", "20m", "30m"), "nozzle": ("with nozzle", "without nozzle")},
    "Tool Box": {"material": ("plastic", "steel"), "trays": ("one tray", "three trays")},
    "Bird Feeder": {"shape": ("house", "tube"), "color": ("green", "brown")},
    "Watering Can": {"volume": ("2 litres", "5 litres"), "material": ("zinc", "plastic")},
    "Candle Set": {"scent": ("vanilla", "cedar", "unscented"), "count": ("3 candles", "6 candles")},
    "Chess Set": {"material": ("wooden", "marble"), "size": ("travel", "tournament")},
    "Tea Pot": {"material": ("cast iron", "porcelain"), "volume": ("0.6 litres", "1.2 litres")},
    "Spice Rack": {"jars": ("8 jars", "16 jars"), "mount": ("wall", "counter")},
    "Bread Bin": {"material": ("bamboo", "enamel"), "color": ("cream", "black")},
    "Baking Tray": {"depth": ("shallow", "deep"), "coating": ("plain steel", "non-stick")},
    "Wine Rack": {"bottles": ("6 bottles", "12 bottles"), "material": ("wire", "wooden")},
    "Coat Rack": {"hooks": ("4 hooks", "8 hooks"), "mount": ("wall", "floor")},
    "Shoe Bench": {"width": ("60cm", "90cm"), "seat": ("padded seat", "plain seat")},
    "Floor Cushion": {"shape": ("round", "square"), "color": ("rust", "indigo", "sand")},
    "Mirror": {"shape": ("oval", "round", "arched"), "frame": ("brass", "black metal")},
    "Paper Lantern": {"diameter": ("30cm", "45cm", "60cm"), "color": ("white", "rose")},
    "Key Holder": {"hooks": ("3 hooks", "6 hooks"), "material": ("slate", "felt")},
}  # fmt: skip

REASONS = ("no longer needed", "ordered by mistake")
SOURCES = ("credit_card", "paypal", "gift_card")


ORDER_IDS = number_pool("#W", 120, 1_000_000, 9_999_999, "orders")
ITEM_IDS = number_pool("", 160, 1_000_000_000, 9_999_999_999, "items")
PRICES = tuple(f"{p / 100:.2f}" for p in sorted(random.Random("muarl retail prices").sample(range(805, 19_999, 3), 60)))
PAYMENT_IDS: Mapping[str, tuple[str, ...]] = {
    source: number_pool(f"{source}_", 12, 1_000_000, 9_999_999, source) for source in SOURCES
}


def product_id(name: str) -> str:
    """The ten-digit id of a product: the same in every shop, as in a retailer's one catalogue."""
    return str(1_000_000_000 + int(hashlib.sha256(f"product {name}".encode()).hexdigest(), 16) % 9_000_000_000)
