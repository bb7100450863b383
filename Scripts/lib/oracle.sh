# Functions for scripts that run the oracle in Tests/Oracle, and that source this file in the repository's root.

# Installs the oracle's SQLCipher if it is missing, and fails if that is not possible.
have_oracle() {
    local packages=.build/oracle/packages
    [ -d "$packages/sqlcipher3" ] ||
        python3 -m pip install --quiet --disable-pip-version-check --target "$packages" sqlcipher3-binary 2>/dev/null
}

# Runs one of the oracle's programs.
oracle() {
    PYTHONPATH=$PWD/.build/oracle/packages PYTHONDONTWRITEBYTECODE=1 python3 "Tests/Oracle/$1" "${@:2}"
}
