# Runs apt with separate package lists, so that the machine's lists and sources stay unchanged.
# Shared by the scripts that use Debian's packages, which source it after common.sh.

# The command through which private_apt runs apt-get, such as sudo. It may be empty.
through=()

# source_files: prints the machine's source files, one per line, in the old style (.list) and the new style (.sources).
source_files() {
    local list parts file
    eval "$(apt-config shell list Dir::Etc::SourceList/f parts Dir::Etc::SourceParts/d)"
    for file in "$list" "${parts%/}"/*.list "${parts%/}"/*.sources; do
        if [ -f "$file" ] && [ -r "$file" ]; then printf '%s\n' "$file"; fi
    done
}

# own_sources FOLDER: links the machine's unchanged sources into FOLDER.
own_sources() {
    local file number=0
    while IFS= read -r file; do
        number=$((number + 1))
        ln -s "$file" "$1/own-$number.${file##*.}"
    done < <(source_files)
}

# derived_sources FOLDER SUITE
# Writes the machine's sources for its Debian release into FOLDER, with SUITE in place of the release. Fails if there are
# none.
# Editing the entries, rather than composing new ones, keeps the mirror, its keys and its options.
derived_sources() {
    local base
    # A source may name its release by its code name or by its current status, such as stable.
    for base in "$(debian_codename)" stable oldstable testing unstable sid; do
        if replace_suite "$base" "$2" "$1"; then return 0; fi
    done
    return 1
}

# replace_suite FROM TO [FOLDER]: writes the sources that have the suite FROM into FOLDER, with TO in its place. Fails if
# no source has FROM. Without FOLDER, it writes nothing.
replace_suite() {
    local from=$1 to=$2 folder=${3:-} file edited number=0 status=1
    while IFS= read -r file; do
        edited=$("edit_${file##*.}" "$from" "$to" <"$file")
        [ -n "$edited" ] || continue
        status=0
        number=$((number + 1))
        # An entry may contain a password, so only the owner may read the copy.
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
# Runs apt-get with the sources in FOLDER/sources and the lists in FOLDER/lists. FOLDER is absolute.
# By default, apt downloads as a separate user, who may not have access to FOLDER; hence "root".
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
