"""The lines of a watch, each one object, with a bound on what is kept of one.

`aiohttp` reads lines, too, and raises at one beyond its buffer: that ended the stream at the same object
again and again. Here a longer line is cut, and what follows it comes through.
"""

from collections.abc import AsyncIterable, AsyncIterator

#: Bytes of a line that are kept. etcd takes 1.5 MiB; JSON writes a `<` of one byte in six, and the names of
#: fields beside the values, so that nothing which a cluster with etcd's default stores comes near this.
MOST_LINE_BYTES = 32 * 1024 * 1024


class CutLine(bytes):
    """The beginning of a line that was too long; `size` is the length of the whole."""

    size: int

    @classmethod
    def of(cls, head: bytes, size: int) -> "CutLine":
        cut = cls(head)
        cut.size = size
        return cut


async def lines_of(chunks: AsyncIterable[bytes], most: int = MOST_LINE_BYTES) -> AsyncIterator[bytes]:
    """Each line without its end; the beginning of one that is longer than `most` as a `CutLine`.

    A line that the stream breaks off is not one: the object comes again with the next stream.
    """
    kept, size = bytearray(), 0
    async for chunk in chunks:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            kept += chunk[start : min(end, start + most - len(kept))]
            size += end - start
            if size:
                yield bytes(kept) if size == len(kept) else CutLine.of(bytes(kept), size)
            kept, size, start = bytearray(), 0, end + 1
        kept += chunk[start : start + most - len(kept)]
        size += len(chunk) - start
