"""Pictures as jobs read them are as PIL reads them: pictures_like_pil.py PICTURE_TOOL"""
import io
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

import numpy as np
from PIL import Image

TOOL = None


def png(samples, colour_type, bits=8, chunks=(), palette=None):
    """A PNG file of rows of samples, bit for bit as told. PIL cannot write all kinds."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width = samples.shape[:2]
    if bits == 16:
        rows = [row.astype(">u2").tobytes() for row in samples]
    elif bits == 8:
        rows = [row.astype(np.uint8).tobytes() for row in samples]
    else:
        unpacked = [((row[:, None] >> np.arange(bits)[::-1]) & 1).ravel().astype(np.uint8) for row in samples]
        rows = [np.packbits(row).tobytes() for row in unpacked]
    body = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour_type, 0, 0, 0))
    before = [one for one in chunks if one[0] != b"tRNS"]
    after = [one for one in chunks if one[0] == b"tRNS"]
    for kind, content in before:
        body += chunk(kind, content)
    if palette is not None:
        body += chunk(b"PLTE", palette.astype(np.uint8).tobytes())
    for kind, content in after:
        body += chunk(kind, content)
    body += chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows)))
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b"")


class LikePil(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tandem-pictures-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tool = subprocess.Popen([TOOL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.tool.wait)
        self.addCleanup(self.tool.stdout.close)
        self.addCleanup(self.tool.stdin.close)
        self.random = np.random.default_rng(5)

    def ours(self, file, channels, size=(0, 0)):
        picture, raw = self.folder / "picture", self.folder / "raw"
        picture.write_bytes(file)
        self.tool.stdin.write(f"{channels} {size[0]} {size[1]} {picture} {raw}\n")
        self.tool.stdin.flush()
        self.assertEqual(self.tool.stdout.readline(), "\n")
        head, _, pixels = raw.read_bytes().partition(b"\n")
        width, height, channels = map(int, head.split())
        return np.frombuffer(pixels, np.uint8).reshape(height, width, channels).astype(int)

    def pils(self, file, channels, size=None):
        image = Image.open(io.BytesIO(file)).convert("L" if channels == 1 else "RGB")
        if size:
            image = image.resize(size, Image.Resampling.BILINEAR)
        return np.asarray(image).reshape(image.height, image.width, channels).astype(int)

    def compare(self, file, channels, most=0, size=None):
        ours, pils = self.ours(file, channels, size or (0, 0)), self.pils(file, channels, size)
        self.assertEqual(ours.shape, pils.shape)
        self.assertLessEqual(np.abs(ours - pils).max(), most)

    def noise(self, *shape, below=256):
        return self.random.integers(0, below, shape)

    def written(self, pixels, mode, **options):
        file = io.BytesIO()
        Image.fromarray(pixels.astype(np.uint8), mode).save(file, options.pop("format", "png"), **options)
        return file.getvalue()

    def test_any_size_becomes_any_other(self):
        sizes = [(1, 1), (1, 9), (7, 1), (2, 3), (5, 5), (13, 31), (32, 32), (64, 17), (101, 99)]
        more = [tuple(int(one) for one in self.random.integers(1, 120, 2)) for _ in range(12)]
        for height, width in sizes + more:
            for channels, mode in ((1, "L"), (3, "RGB")):
                pixels = self.noise(height, width) if channels == 1 else self.noise(height, width, 3)
                # Black and white alone reach the ends of the range.
                for content in (pixels, (pixels > 127) * 255):
                    file = self.written(content, mode)
                    for size in [(1, 1), (8, 8), (33, 7), (224, 224)] + [tuple(map(int, self.random.integers(1, 90, 2)))]:
                        with self.subTest(of=(width, height), to=size, channels=channels):
                            self.compare(file, channels, most=1, size=size)

    def test_png_of_eight_bits_is_exact(self):
        for mode, shape in (("L", ()), ("LA", (2, )), ("RGB", (3, )), ("RGBA", (4, ))):
            file = self.written(self.noise(9, 14, *shape), mode)
            for channels in (1, 3):
                with self.subTest(mode, channels=channels):
                    self.compare(file, channels)

    def test_png_of_fewer_bits_is_exact(self):
        for bits in (1, 2, 4):
            file = png(self.noise(9, 13, below=2**bits), 0, bits)
            for channels in (1, 3):
                with self.subTest(bits, channels=channels):
                    self.compare(file, channels)

    def test_png_of_a_palette_is_exact(self):
        palette = self.noise(16, 3)
        for bits in (4, 8):
            for chunks in ((), ((b"tRNS", bytes(range(0, 160, 10))), )):
                file = png(self.noise(9, 13, below=16), 3, bits, chunks, palette)
                for channels in (1, 3):
                    with self.subTest(bits, channels=channels, chunks=chunks):
                        self.compare(file, channels)

    def test_png_of_sixteen_bits_is_the_upper_eight(self):
        colours = png(self.noise(9, 13, 3, below=65536), 2, 16)
        self.compare(colours, 3, most=1)
        self.compare(png(self.noise(9, 13, 4, below=65536), 6, 16), 3, most=1)
        # PIL cuts grey of sixteen bits off at 255 when asked for eight; so it is compared with what it should be.
        grey = self.noise(9, 13, below=65536)
        self.assertLessEqual(np.abs(self.ours(png(grey, 0, 16), 1)[..., 0] - grey / 257).max(), 1)

    def test_colour_spaces_of_a_png_are_passed_over(self):
        pixels = self.noise(9, 13, 3)
        for name, chunks in {
                "linear": ((b"gAMA", struct.pack(">I", 100000)), ),
                "dark": ((b"gAMA", struct.pack(">I", 20000)), ),
                "sRGB": ((b"sRGB", b"\0"), (b"gAMA", struct.pack(">I", 45455))),
                "wide": ((b"gAMA", struct.pack(">I", 100000)), (b"cHRM", struct.pack(">8I", 31270, 32900, 73470, 26530, 11530,
                                                                                     82640, 15660, 1770))),
                "background": ((b"bKGD", struct.pack(">HHH", 9, 99, 199)), )
        }.items():
            for channels in (1, 3):
                with self.subTest(name, channels=channels):
                    self.compare(png(pixels, 2, 8, chunks), channels)
                    self.compare(png(pixels[..., 0], 0, 8, chunks[:1] if name != "background" else ()), channels)
        with self.subTest("with alpha"):
            self.compare(png(self.noise(9, 13, 4), 6, 8, ((b"gAMA", struct.pack(">I", 100000)), )), 3)

    def smooth(self, height, width):
        y, x, c = np.ogrid[:height, :width, :3]
        return 128 + 60 * np.sin(x / 9 + c) + 50 * np.cos(y / 7 - c)

    def test_jpeg_is_exact(self):
        for options in ({"quality": 95}, {"quality": 30}, {"subsampling": 0}, {"progressive": True}):
            for pixels in (self.smooth(45, 67), self.noise(45, 67, 3)):
                with self.subTest(**options):
                    self.compare(self.written(pixels, "RGB", format="jpeg", **options), 3)
        self.compare(self.written(self.noise(45, 67), "L", format="jpeg"), 1)
        self.compare(self.written(self.noise(45, 67), "L", format="jpeg"), 3)
        self.compare(self.written(self.noise(45, 67, 4), "CMYK", format="jpeg"), 3, most=1)

    def test_grey_of_a_jpeg_is_its_luma(self):
        """PIL goes there and back by way of colours, and loses a bit."""
        self.compare(self.written(self.smooth(45, 67), "RGB", format="jpeg"), 1, most=2)

    def test_a_jpeg_that_lies_on_its_side_stays_so(self):
        exif = Image.Exif()
        exif[0x0112] = 6
        self.compare(self.written(self.smooth(45, 67), "RGB", format="jpeg", exif=exif), 3)


if __name__ == "__main__":
    TOOL = sys.argv.pop(1)
    unittest.main()
