"""One reader of lines: what it reads, and that counts and datasets agree."""

import bz2
import gzip
import io
import lzma
import pathlib

import pytest
from backports import zstd

from keras_attention.data.readers import lines, parallel_files

COMPRESS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    # As the command `zstd` does, with a checksum.
    ".zst": lambda content: zstd.compress(
        content, options={zstd.CompressionParameter.checksum_flag: 1}
    ),
}
FAST = ("", ".gz")
BOM = "\ufeff".encode()
LONG = b"long" * 300_000  # Longer than the buffer.

# Content, and its lines.
ODD = {
    "windows": (b"a\r\nb c\r\n", ["a", "b c"]),
    "no newline at the end": (b"a\nb", ["a", "b"]),
    "blank lines": (b"a\n\n  \nb\n", ["a", "", "  ", "b"]),
    "line separators": (
        "a\u2028b\nc\u2029d\x85e\n".encode(),
        ["a\u2028b", "c\u2029d\x85e"],
    ),
    "vertical tabs": (b"a\x0bb\nc\x0cd\x1ce\n", ["a\x0bb", "c\x0cd\x1ce"]),
    "a lone carriage return": (b"a\rb\nc\n", ["a b", "c"]),
    "carriage returns alone": (b"a\rb\rc", ["a", "b", "c"]),
    "an old Mac": (BOM + b"a b\r\rc\r", ["a b", "", "c"]),
    "two carriage returns": (b"a\r\r\nb\n", ["a", "b"]),
    "a carriage return at the end": (b"a\nb\r", ["a", "b"]),
    "a last line of carriage returns": (b"a\r\nb\r\n\r\r", ["a", "b"]),
    "a line of carriage returns": (b"a\n\r\r\nb\n", ["a", "", "b"]),
    "NUL": (b"a\x00b\nc\x00\n", ["a\x00b", "c\x00"]),
    "a mark at the start": (BOM + b"a\nb\n", ["a", "b"]),
    "a mark where files were joined": (
        BOM + b"a\n" + BOM + b"b\n",
        ["a", "b"],
    ),
    "marks of empty files that were joined": (
        BOM + BOM + b"a\r\n" + BOM,
        ["a"],
    ),
    "a blank line after a mark": (BOM + b"\na\n", ["", "a"]),
    "a mark in a line is text": (b"a" + BOM + b"b\n", ["a\ufeffb"]),
    "one newline": (b"\n", [""]),
    "a newline at the start": (b"\na\n", ["", "a"]),
    "a very long line": (LONG + b"\nb\n", [LONG.decode(), "b"]),
}


@pytest.mark.parametrize(
    "suffix",
    [
        pytest.param(one, marks=() if one in FAST else pytest.mark.slow)
        for one in COMPRESS
    ],
)
@pytest.mark.parametrize("content, expected", ODD.values(), ids=ODD)
def test_counter_and_dataset_read_the_same_lines(
    tmp_path, read, content, expected, suffix
):
    path = tmp_path / f"train.en{suffix}"
    path.write_bytes(COMPRESS[suffix](content))
    assert list(lines.read_lines(path)) == expected
    pairs, count = parallel_files.pairs(path, path)
    assert count == len(expected)
    assert read(pairs) == [(line, line) for line in expected]


@pytest.mark.parametrize("content, expected", ODD.values(), ids=ODD)
def test_an_open_file_has_the_same_lines(content, expected):
    found = lines.split_lines(io.BytesIO(content))
    assert [line.decode() for line in found] == expected


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_joined_compressed_files_are_read_to_the_end(tmp_path, read, suffix):
    """`cat 1.gz empty.gz 2.gz`, of which the first has no last newline."""
    compress = COMPRESS[suffix]
    path = tmp_path / f"train.en{suffix}"
    members = [b"a\nb", b"", b"c\n" + BOM + b"d\n", b""]
    path.write_bytes(b"".join(map(compress, members)))
    assert list(lines.read_lines(path)) == ["a", "bc", "d"]
    pairs, _ = parallel_files.pairs(path, path)
    assert [source for source, _ in read(pairs)] == ["a", "bc", "d"]


def test_zero_bytes_after_gzip_are_nothing(tmp_path, read):
    path = tmp_path / "train.en.gz"
    path.write_bytes(gzip.compress(b"a\nb\n") + bytes(512))
    assert list(lines.read_lines(path)) == ["a", "b"]
    assert len(read(parallel_files.pairs(path, path)[0])) == 2


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("content", [b"", b"\r", BOM, BOM + b"\r"])
def test_a_file_without_text_has_no_line(tmp_path, content, suffix):
    path = tmp_path / f"train.en{suffix}"
    path.write_bytes(COMPRESS[suffix](content))
    assert list(lines.read_lines(path)) == []
    with pytest.raises(ValueError, match="line 1: the file is empty"):
        parallel_files.pairs(path, path)


TEXT = bytes(range(128)) * 2_000


def garbled(whole):
    middle = len(whole) // 2
    return whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]


DAMAGE = {
    "cut by a byte": lambda whole: whole[:-1],
    "cut in the middle": lambda whole: whole[: len(whole) // 2],
    "garbled": garbled,
    "not compressed": lambda whole: b"one line\n",
}
KINDS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}


@pytest.mark.parametrize("suffix", KINDS)
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_compression_is_refused(tmp_path, damage, suffix):
    path = tmp_path / f"train.en{suffix}"
    path.write_bytes(damage(COMPRESS[suffix](TEXT)))
    message = f"The {KINDS[suffix]} file .*train.en{suffix} is damaged after "
    with pytest.raises(ValueError, match=message):
        list(lines.read_lines(path))


def test_another_checksum_is_refused(tmp_path):
    path = tmp_path / "train.en.gz"
    whole = gzip.compress(TEXT)
    path.write_bytes(whole[:-8] + bytes(4) + whole[-4:])
    with pytest.raises(ValueError, match="The gzip file .* is damaged"):
        list(lines.read_lines(path))


def test_a_missing_file_is_the_systems_own_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(lines.read_lines(tmp_path / "nowhere.gz"))


@pytest.mark.parametrize("kind", [str, pathlib.Path])
def test_home_in_a_path(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "größe.en").write_bytes(b"a\n")
    assert list(lines.read_lines(kind("~/größe.en"))) == ["a"]


@pytest.mark.parametrize(
    "line, expected",
    [
        ("a\tb", ("a", "b")),
        ("\t", ("", "")),
        ('{"one": "a\\tb", "two": ["c", "d"], "three": 3}', ("a\tb", "c\nd")),
        # What is no object is text.
        ('{"one"}\t[1]', ('{"one"}', "[1]")),
        ("a", "the line must hold 2 texts .one TAB two., or a JSON object"),
        ("a\tb\tc", "the line must hold 2 texts"),
        ('{"one": "a"}', "must have a text for each of the keys one and two"),
        ('{"one": "a", "two": [1]}', "must have a text for each"),
        ('{"one": "a", "two": null}', "must have a text for each"),
        ("[1, 2]", "the line must hold 2 texts"),
    ],
)
def test_the_texts_of_a_line(line, expected):
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            lines.row(line, ("one", "two"))
    else:
        assert lines.row(line, ("one", "two")) == expected
