"""A Linux kernel with nothing but a RAM disk: Debian's kernel package unpacked, and the archive that it boots from.

    kernel = Kernel(folder)                 # as ./dev setup --kernel leaves it: boot/vmlinuz-*, lib/modules/*
    image = Image(path)                     # an archive in the cpio format "newc", which the kernel unpacks into its root
    image.modules(kernel, ["veth"])         # and what these depend on; /modules names them in the order of loading
    image.program("/usr/bin/rping")         # and the shared libraries that it needs, where they lie here
    image.text("/init", "#!/bin/sh\n...")
    image.close()

The archive has no compression: the guest is an emulated processor, and unpacking would be its longest task.
"""
import os
import pathlib
import re
import subprocess

FOLDER, FILE, LINK, DEVICE = 0o040755, 0o100755, 0o120777, 0o020600


class Kernel:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        images = sorted(self.folder.glob("boot/vmlinuz-*"))
        self.image = images[-1] if images else None
        self.version = self.image.name.removeprefix("vmlinuz-") if images else None

    def module(self, name):
        """The path of a module, or None if the kernel has it inside. File names have - and _ as they like."""
        pattern = re.compile(name.replace("_", "[-_]") + r"\.ko")
        return next((p for p in self.modules() if pattern.fullmatch(p.name)), None)

    def modules(self):
        return self.folder.glob(f"lib/modules/{self.version}/kernel/**/*.ko")

    def in_order(self, names):
        """Paths of the modules and of what they depend on, each after its dependencies."""
        order = []

        def visit(name):
            path = self.module(name)
            if path is None:
                builtin = (self.folder / f"lib/modules/{self.version}/modules.builtin").read_text()
                if not re.search(rf"/{name.replace('_', '[-_]')}\.ko$", builtin, re.MULTILINE):
                    raise LookupError(f"kernel {self.version} has no module {name}")
            elif path not in order:
                needed = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
                for other in needed.group(1).decode().split(",") if needed else []:
                    if other:
                        visit(other)
                order.append(path)

        for name in names:
            visit(name)
        return order


class Image:
    def __init__(self, path):
        self.file = open(path, "wb")
        self.number = 0
        self.there = set()

    def entry(self, path, mode, data=b"", device=(0, 0)):
        """`path` begins with /; the folders that it lies in are made."""
        if path in self.there:
            return
        parent = os.path.dirname(path)
        if parent != "/":
            self.entry(parent, FOLDER)
        self.there.add(path)
        self.number += 1
        name = path.lstrip("/").encode() + b"\0"
        fields = (self.number, mode, 0, 0, 2 if mode == FOLDER else 1, 0, len(data), 0, 0, *device, len(name), 0)
        head = b"070701" + b"".join(b"%08X" % f for f in fields) + name
        self.file.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))

    def text(self, path, text):
        self.entry(path, FILE, text.encode())

    def copy(self, source, path=None):
        self.entry(path or str(source), FILE, pathlib.Path(source).read_bytes())

    def program(self, source, path=None):
        """A program or a library with the libraries that it is linked to; these keep their paths."""
        self.copy(source, path)
        for line in subprocess.run(["ldd", str(source)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.splitlines():
            found = re.search(r"(?:=> )?(/\S+) \(0x", line)
            if found:
                self.copy(os.path.realpath(found.group(1)), found.group(1))

    def modules(self, kernel, names):
        order = kernel.in_order(names)
        for path in order:
            self.copy(path, f"/lib/modules/{path.name}")
        self.text("/modules", "".join(f"/lib/modules/{path.name}\n" for path in order))

    def close(self):
        self.entry("/dev/console", DEVICE, device=(5, 1))
        self.entry("/TRAILER!!!", 0)
        self.file.close()
