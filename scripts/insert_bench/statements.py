"""Multi-row INSERT statements in random key order, made faster than any engine takes them.

The primary key is a permutation of the row's number (odd multiplications and shifted exclusive ors, each
of which can be undone), so keys are unique, spread over the whole range, and need no memory.
The other columns are random. All formatting is one `%` per statement; a process of its own works ahead.
"""

import array
import multiprocessing
import random

ROWS_PER_STATEMENT = 1000
_MASK = (1 << 64) - 1
_QUEUE_STATEMENTS = 64
_TEXT_CHARACTERS = 32

COLUMNS = """
    id       BIGINT UNSIGNED NOT NULL,
    customer INT UNSIGNED NOT NULL,
    product  INT UNSIGNED NOT NULL,
    price    INT UNSIGNED NOT NULL,
    note     VARCHAR(40) NOT NULL,
    PRIMARY KEY (id),
    KEY customer (customer),
    KEY product (product, price),
    KEY price (price, customer)
"""


def key_of(number):
    """The primary key of row `number`: a permutation of the 64-bit numbers."""
    key = number * 0x9E3779B97F4A7C15 & _MASK
    key ^= key >> 32
    key = key * 0xD6E8FEB86659FD93 & _MASK
    return key ^ key >> 29


def _text_pool(rng):
    """Text to cut notes from: random hexadecimal digits, so about half of it compresses away."""
    return rng.randbytes(1 << 16).hex()


def statement(first, count, rng, pool, template):
    """INSERT of the rows numbered `first` and on."""
    randoms = array.array("I", rng.randbytes(16 * count))
    cells = [None] * (5 * count)
    cells[0::5] = map(key_of, range(first, first + count))
    cells[1::5] = randoms[0::4]
    cells[2::5] = randoms[1::4]
    cells[3::5] = randoms[2::4]
    cells[4::5] = [pool[place:place + _TEXT_CHARACTERS] for place in map(0xFFFF.__and__, randoms[3::4])]
    return (template % tuple(cells)).encode()


def _template(table, count):
    return f"INSERT INTO {table} VALUES " + ",".join(["(%d,%d,%d,%d,'%s')"] * count)


def _produce(queue, table, rows, seed):
    rng = random.Random(seed)
    pool, template = _text_pool(rng), _template(table, ROWS_PER_STATEMENT)
    for first in range(0, rows, ROWS_PER_STATEMENT):
        count = min(ROWS_PER_STATEMENT, rows - first)
        if count != ROWS_PER_STATEMENT:
            template = _template(table, count)
        queue.put((count, statement(first, count, rng, pool, template)))
    queue.put(None)


def statements(table, rows, seed):
    """Yields (row count, statement); they are made by another process, ahead of time."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue(_QUEUE_STATEMENTS)
    process = context.Process(target=_produce, args=(queue, table, rows, seed), daemon=True)
    process.start()
    try:
        while (item := queue.get()) is not None:
            yield item
        process.join()
    finally:
        if process.is_alive():
            process.kill()
        process.join()
