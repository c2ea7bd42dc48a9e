"""Write shop.sqlite: 300 customers and 3,000 orders."""

import sqlite3
from contextlib import closing

with closing(sqlite3.connect("shop.sqlite")) as file:
    file.executescript("""
        CREATE TABLE customers (id INTEGER PRIMARY KEY, email TEXT, since DATE);
        CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, status TEXT, price DECIMAL(8, 2));
        CREATE INDEX orders_of_customer ON orders (customer_id);
        CREATE TABLE page_views (customer_id INTEGER, page TEXT);
    """)
    people = [(n, f"p{n}@example.org", "2026-03-14") for n in range(300)]
    file.executemany("INSERT INTO customers VALUES (?, ?, ?)", people)
    orders = [(n, n % 300, "open" if n % 4 else "shipped", n % 80 / 2) for n in range(3000)]
    file.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", orders)
    file.commit()
