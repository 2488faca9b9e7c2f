"""Releases of the R package noiseaware in Python: the standard library alone.

    import noiseaware as na
    na.write_release("ports.json", {"port=C": 17, "port=Q": 8}, na.counts({"port": ["C", "Q"]}), na.noise("laplace", scale=2.0))

In R: read_release("ports.json"). The layout is on the help page ?write_release.
"""
import hashlib, json, re


def _number(x):
    if x is not None and x - x != 0:
        raise ValueError("numbers must be finite, but one is %s" % x)
    return "null" if x is None else "-0.0" if x == 0 and str(x)[0] == "-" else "%.17g" % x


def _is_number(x):
    return x is None or isinstance(x, (int, float)) and not isinstance(x, bool)


def _render(x, indent="\n"):
    """JSON as R writes it, of which the checksum is: numbers side by side, other objects a line for each field."""
    if _is_number(x):
        return _number(x)
    if isinstance(x, (list, tuple)):
        return "[" + ", ".join(_render(y, indent) for y in x) + "]"
    if not isinstance(x, dict):
        return json.dumps(x, ensure_ascii=False)
    fields = [json.dumps(k, ensure_ascii=False) + ": " + _render(v, indent + "  ") for k, v in x.items()]
    if fields and all(map(_is_number, x.values())):
        return "{" + ", ".join(fields) + "}"
    return "{" + indent + "  " + ("," + indent + "  ").join(fields) + indent + "}"


def _checksum(content):
    return hashlib.md5(_render({k: v for k, v in content.items() if k != "checksum"}).encode()).hexdigest()


def _name(x):
    return x if re.fullmatch(r"(?![0-9_])[\w.]+", x) else "`" + x + "`"


def counts(levels, *margins):
    """Counts of margins, tuples of variables; by default of all variables crossed. Component: "a=1:b=2"."""
    return {"name": "counts", "formula": "~" + " + ".join(":".join(map(_name, m)) for m in margins or [tuple(levels)]), "levels": levels}


def sums(variable, lower, upper):
    """The sum of a variable that is clamped to bounds."""
    return {"name": "sums", "formula": "~" + _name(variable), "bounds": {variable: [lower, upper]}, "outside": "clamp"}


def records(levels):
    """One answer a record, of variables with these levels. Component: "a[1]", the code of an answer from 0 on."""
    return {"name": "records", "formula": "~" + " + ".join(map(_name, levels)), "levels": levels}


def noise(name, **size):
    """ "laplace", "gaussian", "discrete_laplace" or "discrete_gaussian", with scale = or sd = ; "randomized_response" with epsilon = or
    matrix = {level: {answer: probability}}, or these by variable; "unary_encoding" with p = and q = , where the values are not the sums of
    bits, but estimates of the counts, (sum - n * q) / (p - q)."""
    return {"name": name, **size}


def write_release(path, value, statistic, mechanism, n=None, neighbours="add_remove", contributions=None):
    """Several statistics of the same records: three dictionaries with the same keys. contributions: with neighbours="person" or
    "person_replaced", the most records of one."""
    if "name" not in statistic:
        value = {k + ": " + component: x for k in statistic for component, x in value[k].items()}
    content = {"format": "noiseaware release", "version": 4 if contributions is None else 5, "n": n, "neighbours": neighbours,
               **({} if contributions is None else {"contributions": contributions}), "missing": "refused", "noise": "published",
               "statistic": statistic, "mechanism": mechanism, "value": value}
    text = _render({**content, "checksum": _checksum(content)})
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(text + "\n")


def read_release(path):
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    if not isinstance(content, dict) or content.get("format") != "noiseaware release":
        raise ValueError(path + " is not a release")
    if content.get("version") not in range(1, 6):
        raise ValueError("%s has version %s, but the versions known are 1 to 5" % (path, content.get("version")))
    if content.get("checksum") != _checksum(content):
        raise ValueError(path + " was changed after it was written")
    return content


def write_marginals(path, table, laplace=False):
    """Noisy measurements of an OpenDP contingency table, for read_release() in R. laplace: the budget was pure."""
    marginals = [{"clique": list(clique), "values": [float(v) for v in m.noisy_measurement], **({"scale": m.stddev / 2 ** 0.5} if laplace else {"sd": m.stddev})}
                 for clique, m in table.marginals.items()]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"levels": {k: list(keys) for k, keys in table.keys.items()}, "marginals": marginals}, file)
