"""Expressions that call each of SQLite's functions with the largest arguments that it accepts."""

from __future__ import annotations

import sqlite3

# A value of N bytes that takes a few bytes of schema, as text and as a blob.
_SIZES = {"small": 30_000, "file": 450_000, "large": 7_000_000}


def _text(size: int) -> str:
    return f"hex(zeroblob({size // 2}))"


# Calls whose arguments must have a certain form. T is a long text, H is half as long, and B is a long blob.
_SHAPED = [
    "instr(T, H || '1')",
    "instr(B, zeroblob(1) || x'01')",
    "replace(T, H || '1', 'x')",
    "replace(T, '0', H)",
    "trim(T, replace(H, '0', 'a') || '0')",
    "ltrim(T, replace(H, '0', 'a') || '0')",
    "rtrim(T, replace(H, '0', 'a') || '0')",
    "T LIKE '%' || substr(H, 1, 49000) || '1'",
    "T LIKE '%0%0%0%0%0%0%0%0%0%0%0%0%0%1'",
    "T LIKE replace(substr(H, 1, 24000), '0', '%0') || '1'",
    "T LIKE replace(substr(H, 1, 24000), '0', '_%') || '1'",
    "like(H, T, 'x')",
    "T GLOB '*' || substr(H, 1, 49000) || '1'",
    "T GLOB '*[' || substr(H, 1, 49000) || 'x]1'",
    "T GLOB replace(substr(H, 1, 24000), '0', '*0') || '1'",
    "T GLOB replace(substr(H, 1, 16000), '0', '[0]') || '1'",
    "T REGEXP H",
    "T MATCH H",
    "unhex(replace(T, '0', '-'), replace(H, '0', 'a') || '-')",
    "concat(" + ", ".join(["T"] * 126) + ")",
    "concat_ws(T, " + ", ".join(["'a'"] * 120) + ")",
    "concat_ws(T, " + ", ".join(["NULL"] * 120) + ")",
    "concat_ws(',', " + ", ".join(["T"] * 120) + ")",
    "max(" + ", ".join(["T"] * 100) + ")",
    "coalesce(NULL, " + ", ".join(["nullif(T, T)"] * 100) + ")",
    "printf('" + "%s" * 100 + "', " + ", ".join(["T"] * 100) + ")",
    "printf(replace(T, '0', '%d'), 1)",
    "printf(replace(T, '0', '%f'), 1e300)",
    "printf('%1000000000d', 1)",
    "printf('%.1000000000f', 1)",
    "printf('%.2147483647G', 0)",
    "printf('%.*g', 2147483647, 0.01)",
    "printf('%*d', -2147483648, 1)",
    "printf('%.*c', 1000000000, 'x')",
    "printf('%!.900000f', 1e300)",
    "printf('%,1000000d', 1)",
    "printf('%Q', replace(T, '0', char(39)))",
    "format('%s%s', T, T)",
    "char(" + ", ".join(["1114111"] * 120) + ")",
    "strftime(replace(T, '0', '%J'), 'now')",
    "strftime(replace(T, '0', '%f%w'), 1)",
    "date(" + ", ".join(["1"] + ["'start of month'"] * 120) + ")",
    "datetime(1, T)",
    "julianday(T, T, T)",
    "time('now', '+' || T || ' days')",
    "timediff(T, T)",
    "json(replace(T, '0', '['))",
    "json('[' || replace(T, '0', '0,') || '0]')",
    "json_valid(replace(T, '0', '['))",
    "json_valid(replace(T, '0', '{\"a\":'))",
    "json_extract('[' || replace(T, '0', '0,') || '0]', '$[#-1]')",
    "json_extract('{}', '$' || replace(T, '0', '.a'))",
    "json_extract(T, " + ", ".join(["'$'"] * 100) + ")",
    "json_patch('{' || replace(H, '0', '\"a\":0,') || '\"b\":1}', '{' || replace(H, '0', '\"c\":0,') || '\"d\":1}')",
    "json_pretty(replace(hex(zeroblob(490)), '0', '[') || replace(hex(zeroblob(490)), '0', ']'), T)",
    "json_pretty('[' || replace(T, '0', '0,') || '0]', H)",
    "json_quote(replace(T, '0', char(1)))",
    "json_array(" + ", ".join(["T"] * 100) + ")",
    "json_object('a', T, 'b', T)",
    "json_set('[' || replace(T, '0', '0,') || '0]', " + ", ".join(["'$[0]', 1"] * 60) + ")",
    "json_remove('[' || replace(T, '0', '0,') || '0]', " + ", ".join(["'$[0]'"] * 120) + ")",
    "json_error_position('[' || replace(T, '0', '0,') || 'x]')",
    "jsonb(replace(T, '0', '['))",
    "jsonb_patch(B, B)",
    "json_array_length('[' || replace(T, '0', '0,') || '0]')",
    "rtreenode(2, x'0000ffff000000')",
    "rtreenode(2, B)",
    "rtreedepth(x'00')",
    "rtreecheck('main', 't')",
    "matchinfo(x'4141414141414141')",
    "snippet(x'4141414141414141')",
    "offsets(x'4141414141414141')",
    "fts3_tokenizer('simple')",
    "fts3_tokenizer('simple', x'4141414141414141')",
    "load_extension('/tmp/harm.so')",
    "sqlcipher_export('main')",
    "highlight(B, 1, T, T)",
    "bm25(B)",
    "sqlite_log(1, T)",
    "quote(replace(T, '0', char(39)))",
    "upper(lower(upper(lower(upper(lower(T))))))",
    "soundex(T)",
    "hex(hex(hex(T)))",
    "abs(T)",
    "round(T, 30)",
    "substr(T, -1000000, 1000000)",
    "CAST(T AS REAL)",
    "CAST(replace(T, '0', '9') AS INTEGER)",
    "T || T || T || T || T || T || T || T",
    "T COLLATE NOCASE = T || '1'",
    "length(" + "hex(" * 30 + "'x'" + ")" * 30 + ")",
    "randomblob(1000000000)",
    "zeroblob(1000000000)",
    "hex(randomblob(400000000))",
    "T IN (" + ", ".join(["T"] * 50) + ")",
    "CASE T " + " ".join([f"WHEN T || '{number}' THEN 1" for number in range(50)]) + " END",
    " + ".join([f"length(upper(b || hex(zeroblob({10_000 + number}))))" for number in range(300)]),
    " + ".join([f"instr(b || hex(zeroblob({10_000 + number})), '1')" for number in range(300)]),
]

# The functions that Python's SQLite may not have, with their numbers of arguments.
_KNOWN = [("concat", 2), ("concat_ws", 3), ("octet_length", 1), ("unhex", 1), ("timediff", 2), ("soundex", 1)]
# Aggregates, of which SQLite refuses the call or the definition, must do no harm either.
_COUNTS = {-1: [0, 1, 2, 5, 120]}


def _all() -> list[tuple[str, int]]:
    connection = sqlite3.connect(":memory:")
    functions = {(row[0], row[4]) for row in connection.execute("PRAGMA function_list") if row[0].isidentifier()}
    return sorted(functions | set(_KNOWN))


def expressions() -> list[str]:
    """Every expression with each size of its arguments."""
    found = []
    for size in _SIZES.values():
        for shape in _SHAPED:
            found.append(_fill(shape, size))
    for name, count in _all():
        for number in _COUNTS.get(count, [count]):
            found.append(_fill(f"{name}({', '.join(['T'] * number)})", _SIZES["small"]))
            found.append(_fill(f"{name}({', '.join(['B'] * number)})", _SIZES["large"]))
    return list(dict.fromkeys(found))


def _fill(shape: str, size: int) -> str:
    # Single capital letters stand for values; they occur nowhere else outside of names and strings.
    out, quoted, before = [], False, ""
    for index, letter in enumerate(shape):
        after = shape[index + 1 : index + 2]
        if letter == "'":
            quoted = not quoted
        alone = not quoted and not (before.isalnum() or before == "_") and not (after.isalnum() or after in "_'")
        values = {"T": _text(size), "H": _text(size // 2), "B": f"zeroblob({size})"}
        out.append(values[letter] if alone and letter in values else letter)
        before = letter
    return "".join(out)
