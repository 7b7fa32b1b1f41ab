"""A second reader of the wire, made of the tables and drawings of docs/protocol at run time.

It decodes the known packets (data/vectors) and must find the fields written beside them. Its layouts must be those of
core/wire/layout.cc, opcode by opcode and mode by mode, and the documents' numbers those of the code. So a document that
lags behind the code fails here.
"""
import re
import unittest
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROTOCOL = ROOT / "docs/protocol"
MODES = ("roce", "irn", "srnic")
POSITIONS = ("First", "Middle", "Last", "Only")


def page(name):
    return (PROTOCOL / f"{name}.md").read_text(encoding="utf-8")


def section(name, heading):
    return re.split(r"^## ", page(name).split(f"\n## {heading}\n", 1)[1], maxsplit=1, flags=re.M)[0]


def rows(text):
    """The cells of each table row, heads and rules left out."""
    table = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.split("\n") if line.startswith("|")]
    return [row for i, row in enumerate(table) if not row[0].startswith("---") and not (i + 1 < len(table) and table[i + 1][0].startswith("---"))]


def drawings():
    """header -> [(field, bytes)], from ' RETH 16 ... | address 8 | R_Key 4 | length 4 |'."""
    found = {}
    for name, heading in (("packets", "Extension headers"), ("irn", "Layouts"), ("srnic", "Layouts")):
        for block in re.findall(r"```\n(.*?)```", section(name, heading), re.S):
            for head, size, rest in re.findall(r"^ ([A-Z]\w+) (\d+)(.*(?:\n {8,}\|?.*)?)", block, re.M):
                cells = re.search(r"\|(.*)\|", rest)[1].split("|")
                fields = [re.fullmatch(r"\s*(.*?)(?: (\d+))?\s*", cell).groups() for cell in cells]
                found[head] = [(field, int(n or size)) for field, n in fields]
                assert sum(n for _, n in found[head]) == int(size), f"{head}: its fields do not make {size} bytes"
    return found


def names(label):
    """'SEND Last, Only with immediate' -> the code's names, in order."""
    label = re.sub(r"[:;].*|, no payload|\(.*", "", label).strip()
    fixed = {"READ request": ["READ_REQUEST"], "acknowledgement": ["ACKNOWLEDGE"], "atomic response": ["ATOMIC_ACKNOWLEDGE"],
             "compare and swap, fetch and add": ["COMPARE_SWAP", "FETCH_ADD"], "READ acknowledgement": ["READ_ACKNOWLEDGE"]}
    if label in fixed:
        return fixed[label]
    verb = re.match(r"SEND|WRITE|READ response", label)[0]
    suffix = "_IMM" if "immediate" in label else "_INVALIDATE" if "invalidate" in label else ""
    return [f"{verb} {p}".upper().replace(" ", "_") + suffix for p in POSITIONS if re.search(rf"\b{p}\b", label)]


def headers(cell):
    return [h for h in re.split(r"[,;]\s*", cell) if h]


def documented():
    """(opcode, mode) -> extension headers; 0x11 and 0x18 with everything that they can carry."""
    layouts, number = {}, {}
    for low, label, rc, uc, ud, after in rows(section("packets", "Opcodes")):
        of_rc = headers(re.sub(r"UD: DETH;? ?", "", after))
        for column, extra in ((rc, []), (uc, []), (ud, ["DETH"])):
            assert not column or len(names(label)) == len(column.split()), label
            for name, opcode in zip(names(label), column.split()):
                if not (opcode == "0x18"):
                    layouts[int(opcode, 16), "roce"] = extra + of_rc
                if column is rc:
                    number[name] = int(opcode, 16)
    for mode in MODES[1:]:
        for label, after, size in rows(section(mode, "Layouts")):
            told = re.search(r"\((0x1[18])", label)
            for opcode in [int(told[1], 16)] if told else [number[name] for name in names(label)]:
                known = layouts.get((opcode, mode), [])
                layouts[opcode, mode] = max(known, headers(after), key=len)
            have = sum(n for h in headers(after) for _, n in drawings()[h])
            assert have == int(size), f"{mode}, {label}: {have} bytes, not {size}"
    for mode in MODES:
        layouts[0x81, mode] = ["CNP"]
    return layouts


def coded():
    """The same from layout.cc and header.h."""
    numbers = {n: int(v, 16) for n, v in re.findall(r"^  (k\w+) = (0x\w+),", (ROOT / "src/core/wire/header.h").read_text(), re.M)}
    as_drawn = {"AtomicEth": "AtomicETH", "AtomicAck": "AtomicAckETH", "Imm": "ImmDt", "CnpPad": "CNP"}
    layouts = {}
    for opcode, columns in re.findall(r"^    \{([\w |]+?), +\"\w+\", +\w+, \{(.*)\}\},", (ROOT / "src/core/wire/layout.cc").read_text(), re.M):
        parts = opcode.split(" | ")
        value = numbers[parts[-1]] | (0x20 if len(parts) == 2 else 0)
        for mode, column in zip(MODES, re.findall(r"has\(.*?\)|kAbsent", columns)):
            if column != "kAbsent":
                layouts[value, mode] = [as_drawn.get(e, e.upper()) for e in re.findall(r"k(\w+)", column)]
    return layouts


def vectors():
    text = (ROOT / "data/vectors/packets.txt").read_text(encoding="utf-8")
    for name, body in re.findall(r"^\[(\w+)\]\n(.*?)(?=^\[|\Z)", text, re.M | re.S):
        yield name, dict(line.split(" = ", 1) for line in body.strip().split("\n") if " = " in line)


def udp_payload(frame):
    """The bytes that the ICRC covers in front of the BTH, masked as icrc.md says, and the UDP payload."""
    ip = bytearray(frame[14:])
    if frame[12:14] == b"\x08\x00":
        size = 20
        for i in (1, 8, 10, 11):
            ip[i] = 0xFF
    else:
        size = 40
        ip[0] |= 0x0F
        for i in (1, 2, 3, 7):
            ip[i] = 0xFF
    ip[size + 6] = ip[size + 7] = 0xFF
    return bytes(ip[:size + 8]), frame[14 + size + 8:]


class Documents(unittest.TestCase):
    def test_layouts_are_those_of_the_code(self):
        written, code = documented(), coded()
        self.assertGreater(len(code), 80)
        self.assertEqual({k: v for k, v in written.items() if code.get(k) != v}, {k: v for k, v in code.items() if written.get(k) != v})

    def test_known_packets_have_the_fields_that_the_documents_say(self):
        layouts, draw, checked = documented(), drawings(), 0
        # A field of the vectors, and what the drawings call it.
        called = {"va": ["address"], "rkey": ["R_Key"], "dma_len": ["length"], "syndrome": ["syndrome"], "msn": ["MSN"],
                  "a": ["swap or add"], "b": ["compare"], "qkey": ["Q_Key"], "src_qp": ["source queue pair"], "ext_flags": ["flags"],
                  "echo_msn": ["echoed MSN"], "echo_offset": ["echoed PSN_OFFSET"], "psn_offset": ["PSN_OFFSET"], "srx_msn": ["MSN"],
                  "sack": ["trigger's PSN", "first missing"], "sn": ["recv_WQE_SN", "SSN"]}
        for name, known in vectors():
            frame = bytes.fromhex(known["frame"])
            if frame[12:14] == b"\x89\x15":
                continue  # RoCE version 1
            with self.subTest(name):
                masked, payload = udp_payload(frame)
                mode = MODES[payload[1] & 0x0F]
                self.assertEqual(mode, known.get("mode", "roce"))
                self.assertEqual(int.from_bytes(payload[5:8], "big"), int(known["dest_qp"], 0))
                self.assertEqual(int.from_bytes(payload[9:12], "big"), int(known["psn"], 0))
                bits = {"solicited": payload[1] & 0x80, "migreq": payload[1] & 0x40, "fecn": payload[4] & 0x80,
                        "becn": payload[4] & 0x40, "ackreq": payload[8] & 0x80}
                self.assertEqual({b for b in bits if bits[b]}, set(known.get("bits", "").split()))
                ext = layouts[payload[0], mode]
                if payload[0] in (0x11, 0x18) and mode == "irn" and payload[12] != 0x60:
                    ext = ["AETH"]
                fields, at = {}, 12
                for head in ext:
                    for field, size in draw.get(head, [("zeros", 16)]):
                        fields[head, field] = int.from_bytes(payload[at:at + size], "big")
                        at += size
                pad = payload[1] >> 4 & 3
                self.assertEqual(len(payload) - at - pad - 4, int(known["payload"]))
                body = bytearray(payload[:-4])
                body[4] = 0xFF
                icrc = zlib.crc32(b"\xff" * 8 + masked + bytes(body)).to_bytes(4, "little")
                self.assertEqual(icrc.hex(), known["icrc"])
                self.assertEqual(icrc, payload[-4:])
                for key, value in known.items():
                    if key not in called:
                        continue
                    there = [v for (head, field), v in fields.items()
                             if field in called[key] and (head, key) not in (("SRX", "msn"), ("AETH", "srx_msn"))]
                    self.assertEqual(there, [int(value, 0)], key)
                    checked += 1
        self.assertGreater(checked, 40)

    def test_delays_behind_receiver_not_ready_codes_are_those_of_the_code(self):
        cells = [cell for row in rows(section("constants", "Receiver-not-ready delays")) for cell in row[1].split(", ")]
        written = [round(float(cell) * 100) for cell in cells]
        sources = [f.read_text() for folder in ("core/wire", "check") for f in sorted((ROOT / "src" / folder).rglob("*.[hc]*"))]
        tables = re.findall(r"\[32\] = \{(\s*65536,.*?)\}", "\n".join(sources), re.S)  # the wire format's and the observers'
        self.assertEqual(len(tables), 2)
        for table in tables:
            self.assertEqual(written, [int(n) for n in re.findall(r"\d+", table)])

    def test_messages_of_the_manager_lie_where_the_code_puts_them(self):
        code = (ROOT / "src/core/wire/mad.cc").read_text()

        def fields_of(function):
            body = re.search(rf"void {function}\(M& m.*?\n\}}", code, re.S)[0]
            return {(int(byte), int(bit), int(width)) for byte, bit, width in re.findall(r"row\(m\.\w+, (\d+), (\d+), (\d+)", body)}

        def fields_in(table):
            found = set()
            for offset, bits, _ in table:
                widths = [int(w) for w in re.findall(r"\d+(?= each)|\d+", bits)] if "bytes" not in bits else []
                byte = None
                for i, place in enumerate(offset.split(", ")):
                    told = re.fullmatch(r"(?:(\d+) ?)?(?:b(\d+)(?:-\d+)?)?", place)
                    byte = int(told[1]) if told[1] else byte
                    if widths:
                        found.add((byte, int(told[2] or 0), widths[min(i, len(widths) - 1)]))
            return found

        req = fields_in(rows(section("connection-manager", "REQ")))
        # Ids and addresses are rows of body_rows, or whole arrays.
        self.assertEqual(req - {(56, 0, 128), (72, 0, 128)}, fields_of("req_rows"))
        others, message = {}, None
        for row in rows(section("connection-manager", "Other messages")):
            message = row[0] or message
            others.setdefault(message, []).append(row[1:])
        for name in ("REP", "MRA", "REJ", "DREQ", "SIDR_REQ", "SIDR_REP"):
            with self.subTest(name):
                self.assertEqual(fields_in(others[name]), fields_of(f"{name.lower()}_rows"))

    def test_messages_between_boxes_lie_where_the_code_puts_them(self):
        code = (ROOT / "src/wan/logic/message.cc").read_text()
        head = (ROOT / "src/wan/logic/message.h").read_text()
        body = re.search(r"void rows\(M& m.*?\n\}", code, re.S)[0]
        width = {"u8": 8, "u24": 24, "u64": 64, "address": 128}
        coded = {(int(at), width[kind]) for kind, at in re.findall(r"r\.(\w+)\([\w.\[\]]+, (\d+)(?: \+ 3 \* i)?\)", body)}
        self.assertEqual(len(coded), len(re.findall(r"\br\.\w+\(", body)), "a row of the code is written in another way")
        table, kinds = [], []
        for row in rows(section("boxes", "The message")):
            (table if len(row) == 4 else kinds).append(row)
        mac = int(re.search(r"kMac = (\d+)", code)[1])
        written = {(int(offset), int(bits.split()[0])) for offset, bits, _, _ in table if offset.isdigit()}
        self.assertEqual({(at, bits) for at, bits in written if 40 <= at < mac}, coded)
        self.assertIn((mac, (256 - mac) * 8), written)
        text = section("boxes", "The message")
        for name in ("kAttribute", "kAnswer", "kRefused"):
            value = int(re.search(rf"{name} = (\w+);", code)[1], 0)
            said = {"kAttribute": r"attribute: (\w+)", "kAnswer": r"(0x\w+) question", "kRefused": r"(0x\w+) refused"}[name]
            self.assertEqual(int(re.search(said, text)[1], 0), value, name)
        most = re.search(r"kMostAhead = (\d+)", head)[1]
        self.assertIn(f"{most} at most", text)
        says = re.findall(r"k(\w+)", re.search(r"enum class Say[^{]*\{(.*?)\}", head, re.S)[1])
        self.assertEqual([(int(number), name) for number, name, _ in kinds], [(i, name.lower()) for i, name in enumerate(says, 1)])


if __name__ == "__main__":
    unittest.main()
