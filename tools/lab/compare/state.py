"""What has been measured, a JSON line each, on disk before the next run begins: a part that ends, or is killed, loses one
run at most."""
import json
import os


class OfAnother(Exception):
    """The file is of another comparison; the text says what differs."""


class State:
    """The first line says of what comparison the rows are: `identity`, and `more`, which is the first part's."""

    def __init__(self, path, identity, more):
        self.path, self.rows = path, {}
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = self._whole_lines()
        if lines:
            self.head, *rows = lines
            differing = [name for name, value in identity.items() if self.head.get(name) != value]
            if differing:
                raise OfAnother(", ".join(f"{name} {self.head.get(name)!r}, not {identity[name]!r}" for name in differing))
            self.rows = {row["key"]: row for row in rows}
        else:
            self.head = {**identity, **more}
            self._append(self.head)

    def _whole_lines(self):
        """A last line without an end was being written when its part was killed: it is taken off."""
        if not self.path.exists():
            return []
        data = self.path.read_bytes()
        whole = data[:data.rfind(b"\n") + 1]
        if whole != data:
            self.path.write_bytes(whole)
        return [json.loads(line) for line in whole.splitlines()]

    def _append(self, record):
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def add(self, key, row):
        self.rows[key] = {"key": key, **row}
        self._append(self.rows[key])
