# Runs apt with separate package lists, so that the machine's lists and sources stay unchanged.
# Shared by the scripts that use Debian's packages, which source it after common.sh.

# The command that private_apt runs apt-get through: nothing, or sudo.
through=()

# source_files: the machine's source files, one a line, old style (.list) and new style (.sources).
source_files() {
    local list parts file
    eval "$(apt-config shell list Dir::Etc::SourceList/f parts Dir::Etc::SourceParts/d)"
    for file in "$list" "${parts%/}"/*.list "${parts%/}"/*.sources; do
        if [ -f "$file" ] && [ -r "$file" ]; then printf '%s\n' "$file"; fi
    done
}

# own_sources FOLDER: the machine's sources as they are.
own_sources() {
    local file number=0
    while IFS= read -r file; do
        number=$((number + 1))
        ln -s "$file" "$1/own-$number.${file##*.}"
    done < <(source_files)
}

# derived_sources FOLDER SUITE
# The machine's sources for its Debian release, with SUITE in the release's place; fails if it has none.
# Editing the entries, rather than composing new ones, keeps the mirror, its keys and its options.
derived_sources() {
    local base
    # A source may name its release by a code name or by what it is to Debian at present.
    for base in "$(debian_codename)" stable oldstable testing unstable sid; do
        if replace_suite "$base" "$2" "$1"; then return 0; fi
    done
    return 1
}

# replace_suite FROM TO FOLDER: fails if no source has FROM. Without FOLDER it only answers that.
replace_suite() {
    local from=$1 to=$2 folder=${3:-} file edited number=0 status=1
    while IFS= read -r file; do
        edited=$("edit_${file##*.}" "$from" "$to" <"$file")
        [ -n "$edited" ] || continue
        status=0
        number=$((number + 1))
        # An entry may hold a password, so the copy is its owner's alone.
        [ -z "$folder" ] || (umask 077 && printf '%s\n' "$edited" >"$folder/derived-$number.${file##*.}")
    done < <(source_files)
    return $status
}

# deb [options] uri suite component…
edit_list() {
    awk -v from="$1" -v to="$2" '
        !/^[ \t]*deb[ \t]/ { next }
        {
            options = ""
            sub(/^[ \t]*deb[ \t]+/, "")
            if (match($0, /^\[[^]]*\]/)) {
                options = substr($0, 1, RLENGTH) " "
                $0 = substr($0, RLENGTH + 1)
            }
            sub(/#.*/, "")
            main = 0
            for (i = 3; i <= NF; i++) if ($i == "main") main = 1
            if ($2 == from && main) print "deb " options $1 " " to " main"
        }'
}

# Stanzas of "Field: value" lines, where an indented line continues the field above it.
edit_sources() {
    awk -v from="$1" -v to="$2" '
        function has(text, word,   words, count, i) {
            count = split(text, words)
            for (i = 1; i <= count; i++) if (words[i] == word) return 1
            return 0
        }
        function finish() {
            if (has(value["types"], "deb") && has(value["suites"], from) && has(value["components"], "main") &&
                tolower(value["enabled"]) !~ /no|false|off|disable|without/)
                printf "Types: deb\nSuites: %s\nComponents: main\n%s\n", to, rest
            split("", value)
            rest = ""
        }
        /^#/ { next }
        /^[ \t]*$/ { finish(); next }
        /^[^ \t]/ {
            field = tolower(substr($0, 1, index($0, ":") - 1))
            value[field] = substr($0, index($0, ":") + 1)
        }
        /^[ \t]/ { value[field] = value[field] " " $0 }
        field !~ /^(types|suites|components|enabled)$/ { rest = rest $0 "\n" }
        END { finish() }'
}

# private_apt FOLDER ARGUMENT…
# apt-get with the sources in FOLDER/sources and the lists in FOLDER/lists. FOLDER is absolute.
# apt likes to download as a user of its own, who may not be able to reach FOLDER: hence "root".
private_apt() {
    local folder=$1
    shift
    "${through[@]}" apt-get -q -y \
        -o Dir::Etc::SourceList=/dev/null \
        -o Dir::Etc::SourceParts="$folder/sources" \
        -o Dir::State::Lists="$folder/lists" \
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
        -o Acquire::Languages=none -o Acquire::Retries=3 \
        -o APT::Sandbox::User=root \
        -o DPkg::Lock::Timeout=120 \
        "$@" </dev/null
}
