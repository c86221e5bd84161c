"""The dates in the queries."""

from __future__ import annotations

from datetime import date

LAST_SHIPPED = date(1998, 9, 2)
"""Q1: 90 days before 1998-12-01."""
MIDDLE = date(1995, 3, 15)
"""Q3: orders from before it, lines shipped after it."""
YEAR, NEXT_YEAR = date(1994, 1, 1), date(1995, 1, 1)
"""Q6: shipped from the first to before the second."""
