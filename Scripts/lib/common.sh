# Functions for the other scripts, which source this file.
# Callers set $me, the name with which their messages begin.

say() { printf '%s: %s\n' "$me" "$*" >&2; }

die() {
    say "$@"
    exit 1
}

# Builds silently. If the build fails, prints all of the compiler's output, which --quiet would suppress.
build() {
    local output
    output=$(swift build "$@" 2>&1) || {
        printf '%s\n' "$output" >&2
        die "the build failed"
    }
}

# Ends the script if a program has a RUNPATH. It would load libraries from there first, such as libIPSec_MB.so.1 from its
# own folder, and anyone with write access there could run code in it.
no_runpath() {
    local dynamic
    dynamic=$(readelf -d "$1") || die "readelf cannot read $1"
    if grep -E 'RPATH|RUNPATH' <<<"$dynamic" >&2; then
        die "$1 does not load libraries by the system's rules alone: build it with --static-swift-stdlib and" \
            "--disable-local-rpath"
    fi
}

# All debug builds of the scripts are the same build: see the end of Package.swift.
export CIPHERSTORE_OPTIMIZED=1

# Build options for programs that are started tens of thousands of times. A release build resembles an app's. A program
# with Swift's libraries linked statically, at a fixed address, starts in half the time.
static=(-c release --static-swift-stdlib -Xlinker -no-pie --scratch-path .build/static)

# Build options for the command-line tool as it is installed: with Swift's libraries linked statically, and without a
# RUNPATH.
installable=(-c release --static-swift-stdlib --disable-local-rpath --scratch-path .build/install)

# Builds Tests/CipherCrashTrials and replaces the shell with it. It runs CipherCrashSubject.
crash_trials() {
    local product
    for product in CipherCrashSubject CipherCrashTrials; do build "${static[@]}" --product $product; done
    exec "$(swift build "${static[@]}" --show-bin-path)/CipherCrashTrials" "$@"
}

# Prints the version of the SQLCipher that a build here would use, such as "4.6.1"; nothing if there is none.
# Its .pc file names SQLite's version (3.46.1 in SQLCipher 4.6.1) or just "3.4", so those two are translated.
sqlcipher_version() {
    local version
    version=$(pkg-config --modversion sqlcipher 2>/dev/null) || return 0
    case $version in
        3.4) echo 3.4.1 ;;
        3.46.1) echo 4.6.1 ;;
        *) dpkg-query -W -f '${source:Upstream-Version}\n' libsqlcipher-dev 2>/dev/null ||
            echo "(with SQLite $version)" ;;
    esac
}

# Prints "bookworm" on Debian 12, "trixie" on Debian 13 and so on; nothing on other systems.
debian_codename() {
    [ -r /etc/os-release ] || return 0
    (
        . /etc/os-release
        if [ "${ID:-}" = debian ]; then echo "${VERSION_CODENAME:-sid}"; fi
    )
}
