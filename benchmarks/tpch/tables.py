"""Makes the tables of TPC-H that the queries read, at any scale, as Parquet files.

They have the columns, types and distributions that matter to these queries: a third of the
customers have no orders; some comments of orders say "special ... requests"; the quantities of one
order in 200 add up to more than 300. The values are drawn by the hash of their row, so that the
same scale always gives the same tables.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

CUSTOMERS_PER_ORDER = 0.1
FILES = 4
"""The number of files of each table."""


def write_tables(folder: Path, orders: int) -> None:
    """Writes the tables customer, orders and lineitem into sub-folders. A scale factor of 1 has
    1,500,000 orders and about four times as many line items."""
    customers = max(3, int(orders * CUSTOMERS_PER_ORDER))
    with duckdb.connect() as database:
        database.execute(_DRAW)
        database.execute(_CUSTOMER.format(customers=customers))
        database.execute(_LINEITEM.format(orders=orders))
        database.execute(_ORDERS.format(orders=orders, customers=customers))
        for table, key in (
            ("customer", "custkey"),
            ("orders", "orderkey"),
            ("lineitem", "orderkey"),
        ):
            (folder / table).mkdir(parents=True)
            for number in range(FILES):
                database.execute(
                    f"copy (select * from {table} where {table[0]}_{key} % {FILES} = {number} "
                    f"order by all) to '{folder}/{table}/{number}.parquet' "
                    "(format parquet, row_group_size 10000)"
                )


# A number from `low` to `high` for a row; `what` tells apart the values that a row draws.
_DRAW = """
create macro draw(what, row, low, high) as
    (low + hash(what || ' ' || row) % (high - low + 1)::ubigint)::integer
"""
_CUSTOMER = """
create table customer as select
    key::bigint as c_custkey,
    printf('Customer#%09d', key) as c_name,
    ['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY'][draw('segment', key, 1, 5)]
        as c_mktsegment
from range(1, {customers} + 1) as keys(key)
"""
_LINEITEM = """
create table lineitem as
with orders as (
    select key, draw('bulk', key, 1, 200) = 1 as is_bulk,
        date '1992-01-01' + draw('date', key, 0, 2405) as ordered
    from range(1, {orders} + 1) as keys(key)
),
lines as (
    select key, ordered, is_bulk, unnest(range(if(is_bulk, 7, draw('lines', key, 1, 7)))) as line
    from orders
),
drawn as (
    select *, key || '/' || line as row,
        draw('quantity', row, if(is_bulk, 44, 1), 50) as quantity,
        ordered + draw('ship', row, 1, 121) as shipped
    from lines
)
select
    key::bigint as l_orderkey,
    quantity::decimal(15, 2) as l_quantity,
    (quantity * draw('price', row, 90000, 110000) / 100)::decimal(15, 2) as l_extendedprice,
    (draw('discount', row, 0, 10) / 100)::decimal(15, 2) as l_discount,
    (draw('tax', row, 0, 8) / 100)::decimal(15, 2) as l_tax,
    case when shipped + draw('receipt', row, 1, 30) > date '1995-06-17' then 'N'
        when draw('flag', row, 0, 1) = 0 then 'R' else 'A' end as l_returnflag,
    if(shipped > date '1995-06-17', 'O', 'F') as l_linestatus,
    shipped as l_shipdate
from drawn
"""
_ORDERS = """
create table orders as
with totals as (
    select l_orderkey as key,
        sum(l_extendedprice * (1 + l_tax) * (1 - l_discount))::decimal(15, 2) as total
    from lineitem group by key
)
select
    key::bigint as o_orderkey,
    (draw('customer', key, 0, ({customers} * 2) // 3 - 1) * 3 // 2 + 1)::bigint as o_custkey,
    total as o_totalprice,
    date '1992-01-01' + draw('date', key, 0, 2405) as o_orderdate,
    0::integer as o_shippriority,
    case draw('comment', key, 0, 30)
        when 0 then 'the special packages wait; pending requests sleep'
        when 1 then 'requests are special'
        else 'deposit number ' || key || ' sleeps above the packages' end as o_comment
from totals
"""
