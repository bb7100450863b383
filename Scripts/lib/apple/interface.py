"""Changes a textual interface of Swift's own modules, as the toolchain on Linux has it, into one for Apple's targets.

    python3 Scripts/lib/apple/interface.py arm64-apple-macosx13.0 <Swift.swiftinterface >out/Swift.swiftinterface

The interface states Apple's availability, but is for Linux and for machines of 64 bits.
"""

import re
import sys

target = sys.argv[1]
text = sys.stdin.read()
text = text.replace("-target x86_64-unknown-linux-gnu", "-target " + target, 1)
# Nobody runs the modules.
text = text.replace(" -O ", " -Onone ", 1)
text = re.sub(r"(?m)^( *)import Glibc$", r"\1import Darwin", text)
# Its bodies would need names that the interface does not have, and so would the remainder and the root of Float80.
text = re.sub(r"(?m)^ *@backDeployed\([^)]*\)", "", text)
text = re.sub(r"self = _stdlib_(remainder|squareRoot)l\(.*", "fatalError()", text)


def narrow(text):
    """Replaces Int64 with Int32 in the names of the compiler's operations."""
    return re.sub(r"Builtin\.\w+", lambda name: name[0].replace("Int64", "Int32"), text)


def narrow_low_word(text):
    """Changes a conversion between an integer of another type and UInt."""
    text = re.sub(r"[zs]extOrBitCast_Int64_Int64", "truncOrBitCast_Int64_Int32", text)
    return re.sub(r"(trunc|OrBitCast)_Int(\d+)_Int64\b", r"\1_Int\2_Int32", text)


def narrow_bits(text):
    """Changes the conversion in the other direction."""
    text = text.replace("truncOrBitCast_Int64_Int64", "zextOrBitCast_Int32_Int64")
    return re.sub(r"OrBitCast_Int64_Int(8|16|32)\b", r"OrBitCast_Int32_Int\1", text)


def narrowed(block):
    """Changes a declaration so that Int and UInt have 32 bits."""
    head = re.search(r"(?m)^(@[^\n]* )?(public )?(struct|extension) [^\n]*", block)
    head = head[0] if head else ""
    if re.search(r"Scalar == Swift\.U?Int\b|SIMDMask.*Swift\.U?Int>", head):
        return ""
    if re.search(r"struct U?Int :|extension Swift\.U?Int\b", head):
        block = re.sub(r"[sz]extOrBitCast_Word_Int32", "truncOrBitCast_Word_Int32", narrow(block))
        block = block.replace("truncOrBitCast_Int32_Word", "sextOrBitCast_Int32_Word")
        block = re.sub(r"\b6([34])\b", lambda width: str(int(width[0]) - 32), block)
        return block.replace("UInt64(_value)", "UInt64(self)")
    for pattern, change in [
        (r"var _lowWord: Swift\.UInt \{.*?\n  \}", narrow_low_word),
        (r"init\(_truncatingBits bits: Swift\.UInt\) \{.*?\n  \}", narrow_bits),
        (r"init\(_ v: Swift\.U?Int\) \{.*?\n  \}", narrow),
        (r"Builtin\.\w+_Int64_FPIEEE\d+\(extended\._value\)", narrow),
        (r"_assumeNonNegative\(_ x: Swift\.Int\).*?\n\}", narrow),
    ]:
        block = re.sub("(?s)" + pattern, lambda match: change(match[0]), block)
    return block


if target.startswith("arm64_32-"):
    text = text.replace("    return 0x4000_0000_0000_0000\n", "    return 0x4000_0000\n")
    text = "".join(map(narrowed, re.split(r"(?m)(?<=^\}\n)", text)))
sys.stdout.write(text)
