# SPDX-License-Identifier: Apache-2.0
"""Runs the query on standard input, and prints its rows as JSON."""
import decimal
import json
import sys

import duckdb


def plain(value):
    """Returns a sum as the integer that it is."""
    if isinstance(value, decimal.Decimal):
        return int(value)
    raise TypeError(type(value))


print(json.dumps(duckdb.sql(sys.stdin.read()).fetchall(), default=plain))
