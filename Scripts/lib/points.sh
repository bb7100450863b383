# Runs of CrashSubject with something done to them at one point, shared by kills and faults, which source it.
# Callers set $me. They define attempts, which prints the names of series, one a line, and series NAME….

# Every operation, on what, from which form to which, and in which journal mode the file is before and after.
# "copies" is what may be left beside the new file, "waiting" the form of a file whose change was put off.
scenario() {
    operation=("${1%%-*}" "$run/app.db")
    template=plaintext before=plaintext after=encrypted mode=wal copies= waiting=
    case $1 in
        encrypt) ;;
        encrypt-backup) operation+=(backup) copies='|app.db-plaintext' ;;
        encrypt-hot) template=plaintext-hot mode=delete ;;
        encrypt-after-*) template=leftovers/${1#encrypt-after-} ;;
        shadow) after=plaintext ;;
        rekey) template=encrypted before=encrypted after=rekeyed ;;
        rekey-hot) template=encrypted-hot before=encrypted after=rekeyed mode=delete ;;
        decrypt) template=encrypted before=encrypted after=plaintext ;;
        decrypt-hot) template=encrypted-hot before=encrypted after=plaintext mode=delete ;;
        launch) after=encrypted-migrated ;;
        launch-migrate) template=encrypted before=encrypted after=encrypted-migrated ;;
        launch-open) template=migrated before=encrypted-migrated after=encrypted-migrated ;;
        launch-rekey)
            operation+=(rekey) template=encrypted before=encrypted after=rekeyed-migrated waiting=encrypted-migrated
            ;;
        launch-decrypt) operation+=(decrypt) template=encrypted before=encrypted after=plaintext-migrated ;;
        launch-plaintext) operation+=(decrypt) after=plaintext-migrated ;;
        *) die "there is no operation $1" ;;
    esac
}
scenarios=(
    encrypt encrypt-backup encrypt-hot shadow rekey rekey-hot decrypt decrypt-hot launch launch-migrate launch-open
    launch-rekey launch-decrypt
)

# The subject, and the files that it begins with.
prepare() {
    local kind
    command -v strace >/dev/null || die "strace is needed; on Debian: apt-get install strace"
    build "${static[@]}" --product CrashSubject
    # In memory where that is possible: it is the calls that are tried, and there a sync costs nothing.
    work=$(realpath "$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)")
    trap 'rm -rf "$work"' EXIT
    # A copy, so that a build meanwhile does not change it.
    subject=$work/subject
    cp "$(swift build "${static[@]}" --show-bin-path)/CrashSubject" "$subject"
    # What a run left is known again by its bytes then.
    export REPEATABLE=yes
    # Linked into one file it does not find by itself what tells where it crashed.
    SWIFT_BACKTRACE=enable=yes,swift-backtrace=$(dirname "$(realpath "$(command -v swift)")")/../libexec/swift/linux/swift-backtrace
    export SWIFT_BACKTRACE
    mkdir "$work"/{plaintext,encrypted,plaintext-hot,encrypted-hot,leftovers,taken,totals}
    for kind in plaintext encrypted; do
        "$subject" make "$work/$kind/app.db" $kind
        "$subject" make "$work/$kind-hot/app.db" $kind hot
        rm -f "$work/$kind/app.db-shm"
        [ -s "$work/$kind/app.db-wal" ] || die "the subject left no rows in its -wal"
        [ -s "$work/$kind-hot/app.db-journal" ] || die "the subject left no journal"
    done
    cp -a "$work/encrypted" "$work/migrated"
    "$subject" launch "$work/migrated/app.db" >/dev/null
}

fresh() {
    rm -rf "$run" "$run.look"
    cp -a "$work/$template" "$run"
    # An upgrade's record knows its files by their inodes, and those of copies are others.
    if [ -s "$run/app.db-attempt" ] && [ -e "$work/$template.inodes" ]; then
        local inode file record names= inodes=
        while read -r inode file; do
            names+="s/ $inode / =$file= /;"
            inodes+="s/ =$file= / $(stat -c %i "$run/$file") /;"
        done <"$work/$template.inodes"
        record=$(sed "$names$inodes" "$run/app.db-attempt")
        printf '%s\n' "$record" >"$run/app.db-attempt"
    fi
}

# Keeps what lies there now as a template: its files, and which inodes they have.
keep() {
    cp -a "$run/." "$1"
    (cd "$run" && stat -c '%i %n' -- *) >"$1.inodes"
}

# How often one thread makes a call, at most: strace counts for each thread by itself.
count_calls() {
    fresh
    strace -f -qq -o "$run.trace" "$@" "$subject" "${operation[@]}" >/dev/null 2>&1
    awk '/\(/ { seen[$1]++ } END { for (id in seen) if (seen[id] > most) most = seen[id]; print most + 0 }' "$run.trace"
}

# Names and bytes of all files but the index of a log; of an upgrade's record, with names in the place of inodes.
digest() {
    (
        cd "$run"
        GLOBIGNORE='*-shm:app.db-attempt'
        cksum -- *
        if [ -e app.db-attempt ]; then sed "$(stat -c 's/ %i / %n /;' -- *)" app.db-attempt; fi
    )
}

# What lies there beside the database, its log, and what the pattern allows.
strangers() {
    local file allowed="app.db(-wal|-shm)?$1"
    left=
    for file in "$run"/*; do
        [[ ${file##*/} =~ ^($allowed)$ ]] || left+="${file##*/} "
    done
}

complain() {
    failures=$((failures + 1))
    printf '  %s: %s\n' "$point" "$1" >&2
}

# A shadow proof never writes the database or its log.
untouched() {
    [ "${operation[0]}" = shadow ] || return 0
    local file
    for file in app.db app.db-wal; do
        cmp -s "$work/$template/$file" "$run/$file" || complain "$file was changed"
    done
}

# What lies there now, told by what a copy of it is once SQLite has recovered it, and by how the next run ends, which is
# part of it: sets found, ending and last. In the same form, and under the same demands, it was tried before.
settle() {
    local lines
    key="${operation[*]} $after $mode $copies $(digest)"
    found=${settled[$key]:-}
    if [ -n "$found" ]; then return; fi
    mapfile -t lines <<<"$("$subject" settle "$run/app.db" "${operation[@]::1}" "${operation[@]:2}" 2>&1)"
    found=${lines[0]} ending=${lines[1]:-} last=${lines[*]:2}
}

# The next run must have finished, with the new file in its journal mode and nothing beside it.
finish() {
    local left
    if [ -n "${settled[$key]:-}" ]; then return; fi
    case $ending in
        encrypted | alreadyEncrypted | shadow | rekeyed | alreadyRekeyed | decrypted | alreadyPlaintext | launched) ;;
        *) complain "the next run says: $ending" && return ;;
    esac
    strangers "$copies"
    if [ -n "$left" ]; then complain "left beside after the next run: $left" && return; fi
    untouched
    if [ "$last" != "$after $mode" ]; then complain "at the end: $last" && return; fi
    settled[$key]=$found
}

# Runs all series, three for each processor, for a run that is traced waits half of its time, and adds up what they
# counted.
run_all() {
    local index jobs=()
    attempts >"$work/series"
    rm -rf "$work"/taken/*
    for ((index = 0; index < 3 * $(nproc); index++)); do
        worker $index &
        jobs+=($!)
    done
    for index in "${jobs[@]}"; do wait "$index" || die "a part of it ended early"; done
    read -r points failures crashed <<<"$(cat "$work"/totals/* |
        awk '{ points += $1; failures += $2; crashed += $3 } END { print points + 0, failures + 0, crashed + 0 }')"
}

worker() {
    local line
    declare -A settled=()
    run=$work/run.$1
    points=0 failures=0 crashed=0
    while IFS= read -r line; do
        if [ $SECONDS -ge "$deadline" ]; then break; fi
        mkdir "$work/taken/${line// /,}" 2>/dev/null || continue
        # shellcheck disable=SC2086
        series $line
    done <"$work/series"
    echo $points $failures $crashed >>"$work/totals/$1"
}
