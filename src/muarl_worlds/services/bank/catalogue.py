"""What the bank of the scenario deals with: kinds of accounts, payees, shops where cards are used."""

from __future__ import annotations

PAYEES = (
    "Brightwater Energy",
    "Cedar Housing",
    "Oak Street Dental",
    "Northgate Gym",
    "Lakeside School",
    "Fern Mobile",
    "City Waterworks",
    "Tidy Cleaning",
    "Hillview Daycare",
    "Maple Insurance",
    "Riverside Sailing Club",
    "Greenfield Vets",
    "Old Mill Music School",
    "Starling Broadband",
    "Parkside Garage",
    "Bluebell Catering",
)
MERCHANTS = (
    "Corner Books",
    "Apex Electronics",
    "Fuel Stop 24",
    "Sunrise Bakery",
    "Velvet Shoes",
    "Pine Furniture",
    "Metro Tickets",
    "Harvest Grocery",
    "Skyline Travel",
    "Dapper Tailors",
    "Pixel Games",
    "Urban Bikes",
    "Coral Spa",
    "Toolshed Hardware",
    "Lumen Lighting",
    "Paws and Claws",
)
VOCABULARY = {"payees": PAYEES, "merchants": MERCHANTS}
