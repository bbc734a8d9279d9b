"""Whole numbers that users write into annotations and strings, with a bound."""


def whole_number(text: str, most: int) -> int | None:
    """The number that a text of ASCII digits says, `most` for a larger one; None for any other text.

    Python refuses to read numbers of thousands of digits, and whoever writes one means "very many".
    """
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0")
    return most if len(digits) > len(str(most)) else min(int(digits or 0), most)
