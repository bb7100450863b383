/* The encryption while the app is running (docs/ONLINE.md), as implemented in FollowingCopy and OpenEncryption.
 *
 * The model has a database in WAL mode, as far as the protocol depends on it: the file, the log's frames, its salts (a
 * number that never repeats), what is synced, what is backfilled, and the readers' marks. The database has two units of
 * conversion; a commit changes one of them and gives it a new version. There are two launches of the app, each of which
 * serves and may convert, and another program with a connection. Each `atomic` is one step: a kill or a power loss can
 * come before and after each step.
 *
 * offline-swap.pml models the swap itself, with its leases, names and syncs; here it is four steps.
 * A key change (-DREKEY) differs only in that a unit is a page, so that no frame lacks its unit. The implemented key change
 * does not read the log; offline-swap.pml models it, with a copy that was mostly made ahead.
 *
 * Scripts/model checks the model, and removes each guard (-DNO_...) and each assumption (-DWITHOUT_...) separately. The
 * lines below tell it which further bounds to check, and with which bounds the removal of a guard shows.
 * live: -DALONE -DKILLS=3 -DSTARTS=5 -DPOWER_LOSSES=1 -DFRAMES=9
 * also: -DTWO_AT_ONCE -DCOMMITS=1 -DPOWER_LOSSES=0
 * also: -DREKEY -DCOMMITS=1
 * NO_COPY_LOCK: -DTWO_AT_ONCE -DCOMMITS=1 -DPOWER_LOSSES=0
 * NO_FOLDER_LOCK: -DTWO_AT_ONCE -DCOMMITS=1 -DPOWER_LOSSES=0
 * NO_LEAVING_OF_WAL: -DALONE -DKILLS=0 -DPOWER_LOSSES=0 -DSTARTS=1
 */

#ifndef STARTS
#define STARTS 2
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef POWER_LOSSES
#define POWER_LOSSES 1
#endif
#ifndef COMMITS
#define COMMITS 2
#endif
#ifndef FRAMES
#define FRAMES 4
#endif

#define Nobody 0
#define Other 3

mtype = {
    off, open_store, serve, claim, keep, first_frame, first_pin, read_salts, clear_mark, apply_0, apply_1,
    write_mark, next_round, unpinned, gate, lock_folder, begin_immediate, last_clear, last_delta, last_sync,
    leave_wal, close_all, look, rename, swept, back
};

/* Whether the database's name refers to the copy instead of the plaintext file. */
bool converted;
byte file[2];
bool is_wal = true;
bool was_written;                        /* since the last check, in rollback mode, as the change counter shows */

/* The log. Frame i belongs to a unit and has a version. A frame without a unit contains a page that no map has. */
byte salt = 1;
byte last_frame, synced, backfilled;
byte unit[FRAMES + 1], version[FRAMES + 1];
bool unmapped[FRAMES + 1];

byte truth[2];                           /* what was committed; a power loss may remove what was never synced */
byte commits;

/* The copy and its mark in the record: a log and a position in it. There is no mark while the copy equals no commit. */
byte copy[2], copy_disk[2];
byte mark_salt, mark_frame;
bool has_mark;
bool mark_is_of_this_start;              /* the system's start, which a power loss ends */
bool is_torn;                            /* a transaction on the copy has not ended, and the copy has no journal */
bool was_built, is_there = true;
bool follows[2];                         /* a round of this run has ended, and its pin still exists */

byte write_lock, exclusive, copy_lock, folder_lock;
byte writers_wait;                       /* the launch whose writers wait */
/* A log ended while no launch could hold it, or in a gap of the switch. In this case, a comparison is not wasted work. */
bool log_was_lost;

mtype at[2] = off;
byte pin_salt[2], changed[2];
byte pin_commits[2];                     /* what PRAGMA data_version returns */
/* Readers: the pin of each launch, and its keeper at the index plus 2. A reader that begins when all of the log is in the
 * file has the mark 0: it prevents backfilling, but does not prevent a restart of the log. */
bool reads[4], reads_file[4];
byte mark[4];
#define Keeper(p) (p + 2)
bool other_is_connected;
byte starts = STARTS, kills = KILLS, power_losses = POWER_LOSSES;
/* A checkpoint that runs in parallel with others, for -DNO_CHECKPOINT_GUARD. */
byte stale_last, stale_salt;

hidden byte i, limit, seen;

#ifdef NO_FOLDER_LOCK
#define no_folder_lock true
#else
#define no_folder_lock false
#endif
#ifdef NO_COPY_LOCK
#define no_copy_lock true
#else
#define no_copy_lock false
#endif
#ifdef NO_STATE_CHECK
#define has_changed false
#else
#define has_changed was_written
#endif
#ifdef NO_SIDECAR_CHECK
#define has_log false
#else
#define has_log (is_wal || last_frame > 0)
#endif

/* Which connections have the file open. */
#define Connected(p) (at[p] != off && at[p] != open_store && at[p] != close_all && at[p] != look && at[p] != rename && at[p] != swept)
#define others_connected (other_is_connected || Connected(1 - me))
#define holds(r) (reads[r] && !reads_file[r])
#define pins_hold (holds(0) || holds(1) || holds(2) || holds(3))
#define file_is_read (reads_file[0] || reads_file[1] || reads_file[2] || reads_file[3])

hidden byte R_is_not_reached; /* fails where it is reached, for -DREACH_... */
hidden byte I1_the_name_holds_a_proven_copy, I2_acknowledged_rows_are_there, I3_copy_equals_original_at_the_rename;
hidden byte I4_copy_equals_the_snapshot, I4_copy_is_whole, I6_no_plaintext_log_is_left, I7_the_app_works_on_in_wal_mode;
hidden byte I7_no_launch_has_the_old_file, I8_no_work_is_thrown_away;

inline newest(u, last) {
    d_step {
        seen = file[u];
        i = 1;
        do
        :: i <= last ->
            if :: unit[i] == u -> seen = version[i] :: else fi;
            i++
        :: else -> break
        od;
        i = 0
    }
}

/* What a reader that begins now sees: only the file, if all of the log is in the file or is believed to be. */
inline present(u) {
    if
    :: backfilled == last_frame -> seen = file[u]
    :: else -> newest(u, last_frame)
    fi
}

inline check() {
    if
    :: converted ->
        I2_acknowledged_rows_are_there = copy[0] == truth[0] && copy[1] == truth[1];
        assert(I2_acknowledged_rows_are_there)
    :: else ->
        present(0);
        I2_acknowledged_rows_are_there = seen == truth[0];
        assert(I2_acknowledged_rows_are_there);
        present(1);
        I2_acknowledged_rows_are_there = seen == truth[1];
        assert(I2_acknowledged_rows_are_there)
    fi;
    seen = 0;
    i = 0
}

inline clear_log() {
    d_step {
        i = 1;
        do
        :: i <= FRAMES -> unit[i] = 0; version[i] = 0; unmapped[i] = false; i++
        :: else -> break
        od;
        last_frame = 0;
        synced = 0;
        backfilled = 0;
        /* A number that nobody remembers. */
        i = 1;
        do
        :: i == salt || i == mark_salt || i == pin_salt[0] || i == pin_salt[1] || i == stale_salt -> i++
        :: else -> break
        od;
        salt = i;
        i = 0
    }
}

inline append(u, v) {
    if
    :: last_frame > 0 && backfilled >= last_frame && !pins_hold -> clear_log()
    :: else
    fi;
    last_frame++;
    unit[last_frame] = u;
    version[last_frame] = v
}

inline backfill(upto) {
    d_step {
        limit = upto;
        i = 0;
        do
        :: i < 4 ->
            if :: holds(i) && mark[i] < limit -> limit = mark[i] :: else fi;
            i++
        :: else -> break
        od;
        if
        :: file_is_read -> skip
        :: else ->
            synced = last_frame;
            i = backfilled + 1;
            do
            :: i <= limit -> file[unit[i]] = version[i]; i++
            :: else -> break
            od;
            if :: limit > backfilled -> backfilled = limit :: else fi
        fi;
        i = 0;
        limit = 0
    }
}

/* The last close in WAL mode, and the end of WAL mode: all of the log is copied into the file, and the log is deleted. */
inline end_log() {
    backfill(last_frame);
    clear_log()
}

inline begin_read(r) {
    reads[r] = true;
    reads_file[r] = backfilled == last_frame;
    mark[r] = last_frame
}

inline end_read(r) {
    reads[r] = false;
    reads_file[r] = false;
    mark[r] = 0
}

inline take_pin(p) {
    begin_read(p);
    pin_salt[p] = salt
}

inline unpin(p) {
    end_read(p);
    end_read(Keeper(p));
    pin_salt[p] = 0;
    pin_commits[p] = 0;
    changed[p] = 0
}

inline end_process(p) {
    unpin(p);
    follows[p] = false;
    if :: write_lock == p + 1 -> write_lock = Nobody :: else fi;
    if :: exclusive == p + 1 -> exclusive = Nobody :: else fi;
    if :: writers_wait == p + 1 -> writers_wait = Nobody :: else fi;
    if :: copy_lock == p + 1 -> copy_lock = Nobody :: else fi;
    if :: folder_lock == p + 1 -> folder_lock = Nobody :: else fi;
    at[p] = off
}

/* A kill. A launch that survives it does not keep the log. The next launch does not keep it either if all of the log is in
 * the file, after a checkpoint when nothing was committed since the last pin. */
inline end_launch(p) {
    log_was_lost = log_was_lost || (copy_lock == p + 1 && (Connected(1 - p) || backfilled == last_frame || mark_salt != salt));
    end_process(p)
}

/* A close without a kill removes the copy. The last close ends the log. */
inline quit(p) {
    if
    :: copy_lock == p + 1 -> has_mark = false; was_built = false
    :: else
    fi;
    end_process(p);
    if
    :: is_wal && !other_is_connected && !Connected(0) && !Connected(1) ->
        end_log();
        log_was_lost = true
    :: else
    fi
}

/* Finds the units that were changed by frames that are not in the copy. A run that follows has had a pin since the last
 * round, so a log that was restarted since then contains all later changes. Another run trusts the mark if it names this
 * log. Otherwise each unit is compared, and is copied if it differs. */
inline find_changes(p, log_salt, last) {
    i = mark_frame + 1;
    if
    :: follows[p] ->
        if :: mark_salt != log_salt -> i = 1 :: else fi;
        changed[p] = 0
#ifndef NO_SALT_CHECK
    :: !follows[p] && (!has_mark || mark_salt != log_salt || mark_frame > last) ->
#else
    :: !follows[p] && !has_mark ->
#endif
        I8_no_work_is_thrown_away = !was_built || log_was_lost;
        assert(I8_no_work_is_thrown_away);
#ifdef REACH_COMPARISON_OF_ALL
        R_is_not_reached = !has_mark;
        assert(R_is_not_reached);
#endif
        i = last + 1;
        changed[p] = 3
    :: else -> changed[p] = 0
    fi;
    do
    :: i <= last ->
#ifdef NO_WHOLE_TABLE_COMPARISON
        changed[p] = changed[p] | (unmapped[i] -> 0 : (1 << unit[i]));
#else
        changed[p] = changed[p] | (1 << unit[i]);
#endif
        i++
    :: else -> break
    od;
    i = 0
}

inline apply(p, u) {
    if
    :: !(changed[p] & (1 << u)) -> skip
    :: else ->
        if
        :: exclusive == p + 1 || reads_file[p] -> seen = file[u]
        :: else -> newest(u, mark[p])
        fi;
        copy[u] = seen;
        seen = 0;
        i = 0
    fi
}

/* The proof of a round compares every row that may have changed. This also checks what the proof does not compare. */
inline check_round(p) {
    newest(0, mark[p]);
    I4_copy_equals_the_snapshot = reads_file[p] || copy[0] == seen;
    assert(I4_copy_equals_the_snapshot);
    newest(1, mark[p]);
    I4_copy_equals_the_snapshot = reads_file[p] || copy[1] == seen;
    assert(I4_copy_equals_the_snapshot);
    seen = 0;
    i = 0
}

proctype App(byte me) {
    do
    /* A launch takes the folder's lock, checks which file has the name, and opens the file. */
    :: atomic { at[me] == off && starts > 0 && !converted && (folder_lock == Nobody || no_folder_lock) ->
        starts--;
        /* Removes what a killed run left, if nobody has locked it. */
        if :: copy_lock == Nobody && !has_mark -> is_there = false; was_built = false :: else fi;
        at[me] = open_store }
    :: atomic { at[me] == open_store && converted -> at[me] = off }
    :: atomic { at[me] == open_store && !converted && exclusive == Nobody && (folder_lock == Nobody || no_folder_lock) ->
#ifndef NO_MODE_RESTORED
        is_wal = true;
#endif
        /* This reader begins before the store's connections, whose checkpoints would let the log restart. */
#ifndef NO_LOG_KEPT
        if :: has_mark && mark_is_of_this_start -> begin_read(Keeper(me)) :: else fi;
#endif
        at[me] = serve;
        check() }
    /* The app's journal mode is in the record, because a kill may have left another mode. */
    :: atomic { at[me] == serve ->
        I7_the_app_works_on_in_wal_mode = is_wal && writers_wait != me + 1;
        assert(I7_the_app_works_on_in_wal_mode);
        at[me] = claim }

    /* One launch converts; the others serve, and try again. */
    :: atomic { at[me] == claim && (copy_lock == Nobody || no_copy_lock) && (folder_lock == Nobody || no_folder_lock) ->
        copy_lock = me + 1;
        is_there = true;
#ifdef NO_RESUMPTION
        has_mark = false;
#endif
        /* Nothing shows what a power loss did to the copy and to the log. */
#ifndef NO_START_CHECK
        has_mark = has_mark && mark_is_of_this_start;
#endif
        I4_copy_is_whole = !has_mark || !is_torn;
        assert(I4_copy_is_whole);
        at[me] = keep }

    /* A reader begins, then a frame is written, then the pins begin. The reader keeps the frame out of the file, so the pins
     * have marks above 0. The log therefore cannot restart while they exist, nor after a kill, unless somebody else copies all
     * of it. */
    :: atomic { at[me] == keep && exclusive == Nobody ->
        /* A launch's own keeper stays where it is, because an older mark keeps more of the log. */
        if :: !reads[Keeper(me)] -> begin_read(Keeper(me)) :: else fi;
        at[me] = first_frame }
    :: atomic { at[me] == first_frame && write_lock == Nobody && exclusive == Nobody &&
        (last_frame < FRAMES || (backfilled >= last_frame && !pins_hold)) ->
#ifndef NO_FRAME_BEFORE_PIN
        append(0, truth[0]);
#endif
        at[me] = first_pin;
        check() }
    /* Under BEGIN IMMEDIATE, so that all readers of the builder and the proof see one commit. */
    :: atomic { at[me] == first_pin && write_lock == Nobody && exclusive == Nobody ->
        take_pin(me);
        at[me] = read_salts }

    /* A round. */
    :: atomic { at[me] == read_salts ->
        find_changes(me, pin_salt[me], mark[me]);
        at[me] = clear_mark }
    /* The copy has no journal, so a kill in a transaction leaves a file that is not a database. */
    :: atomic { at[me] == clear_mark ->
#ifndef NO_MARK_CLEARED
        if :: changed[me] != 0 -> has_mark = false; was_built = false :: else fi;
#endif
        is_torn = changed[me] != 0;
        at[me] = apply_0 }
    :: atomic { at[me] == apply_0 -> apply(me, 0); at[me] = apply_1 }
    :: atomic { at[me] == apply_1 -> apply(me, 1); is_torn = false; check_round(me); at[me] = write_mark }
    :: atomic { at[me] == write_mark ->
        mark_salt = pin_salt[me];
        mark_frame = mark[me];
        mark_is_of_this_start = true;
        has_mark = true;
        was_built = true;
        follows[me] = true;
        log_was_lost = log_was_lost && (backfilled >= last_frame || mark_salt != salt);
        changed[me] = 0;
        at[me] = next_round }

    /* The pin becomes the keeper of the next pin, so the log cannot restart between them. */
#ifndef NO_OVERLAPPING_PINS
    :: atomic { at[me] == next_round && write_lock == Nobody ->
        if
        :: mark[me] < last_frame || (backfilled == last_frame && !reads_file[me]) ->
            reads[Keeper(me)] = true;
            reads_file[Keeper(me)] = reads_file[me];
            mark[Keeper(me)] = mark[me];
            take_pin(me);
            at[me] = read_salts
        :: at[me] = gate
        fi }
#else
    :: atomic { at[me] == next_round -> unpin(me); at[me] = unpinned }
    :: atomic { at[me] == unpinned && write_lock == Nobody ->
        take_pin(me);
        if :: at[me] = read_salts :: at[me] = gate fi }
#endif

    /* The switch. The pin stays until nobody can commit; otherwise the log could restart before its last frames are read. */
    :: atomic { at[me] == gate ->
        if
        :: others_connected -> at[me] = next_round /* a switch would fail, and the pin would be lost for nothing */
        :: else ->
            writers_wait = me + 1;
            at[me] = lock_folder
        fi }
    :: atomic { at[me] == lock_folder && (folder_lock == Nobody || no_folder_lock) ->
        folder_lock = me + 1;
#ifdef NO_PIN_UNTIL_WRITE_LOCK
        unpin(me);
#endif
        at[me] = begin_immediate }
    /* The writer's lock lasts for this step only: another program may commit from here on. */
    :: atomic { at[me] == begin_immediate && write_lock == Nobody ->
        take_pin(me);
        pin_commits[me] = commits;
        find_changes(me, pin_salt[me], mark[me]);
        at[me] = last_clear }
    :: atomic { at[me] == last_clear ->
#ifndef NO_MARK_CLEARED
        if :: changed[me] != 0 -> has_mark = false; was_built = false :: else fi;
#endif
        is_torn = changed[me] != 0;
        at[me] = last_delta }
    :: atomic { at[me] == last_delta ->
#ifndef NO_LAST_DELTA
        apply(me, 0);
        apply(me, 1);
#endif
        is_torn = false;
        at[me] = last_sync }
    :: atomic { at[me] == last_sync ->
#ifndef NO_COPY_SYNC
        copy_disk[0] = copy[0]; copy_disk[1] = copy[1];
#endif
        at[me] = leave_wal }
    /* One connection has an exclusive lock, and has had the file open since before the last pin. It shows whether anybody has
     * committed. */
    :: atomic { at[me] == leave_wal ->
        seen = pin_commits[me];
        unpin(me);
        if
        :: others_connected || write_lock != Nobody -> at[me] = back
#ifndef NO_VERSION_CHECK
        :: !others_connected && write_lock == Nobody && commits != seen ->
#ifdef REACH_COMMIT_AT_THE_SWITCH
            R_is_not_reached = false;
            assert(R_is_not_reached);
#endif
            at[me] = back
        :: !others_connected && write_lock == Nobody && commits == seen ->
#else
        :: else ->
#endif
            exclusive = me + 1;
            log_was_lost = true;
#ifndef NO_LEAVING_OF_WAL
            end_log();
            is_wal = false;
#endif
            was_written = false;
            at[me] = close_all
        fi;
        seen = 0;
        check() }
    /* As in the offline swap, every connection is closed for the lease, so others may open the file again. */
    :: atomic { at[me] == close_all -> exclusive = Nobody; copy_lock = Nobody; at[me] = look }
    :: atomic { at[me] == look ->
        if
        :: others_connected || has_changed || has_log -> at[me] = back
        :: else -> exclusive = me + 1; at[me] = rename
        fi }
    :: atomic { at[me] == rename ->
        I3_copy_equals_original_at_the_rename = copy[0] == truth[0] && copy[1] == truth[1];
        assert(I3_copy_equals_original_at_the_rename);
        I1_the_name_holds_a_proven_copy = is_there && !is_torn && copy_disk[0] == copy[0] && copy_disk[1] == copy[1];
        assert(I1_the_name_holds_a_proven_copy);
        I6_no_plaintext_log_is_left = !is_wal && last_frame == 0;
        assert(I6_no_plaintext_log_is_left);
        I7_no_launch_has_the_old_file = at[1 - me] == off || at[1 - me] == open_store;
        assert(I7_no_launch_has_the_old_file);
#ifdef REACH_CONVERSION_AFTER_KILL_AND_POWER_LOSS
        R_is_not_reached = kills > 0 || power_losses > 0 || commits < COMMITS;
        assert(R_is_not_reached);
#endif
        converted = true;
        at[me] = swept;
        check() }
    :: atomic { at[me] == swept -> end_process(me) }

#ifndef ALONE
    /* The app closes the store. */
    :: atomic { at[me] == serve || at[me] == next_round -> quit(me); check() }
#endif

    /* After any failure, the app continues with the plaintext file in WAL mode, and the next run makes a new copy. */
    :: atomic { at[me] == back ->
        has_mark = false;
        was_built = false;
        exclusive = Nobody;
        if :: write_lock == me + 1 -> write_lock = Nobody :: else fi;
        folder_lock = Nobody;
#ifndef NO_RELEASE
        is_wal = true;
        writers_wait = Nobody;
#endif
        unpin(me);
        follows[me] = false;
        if :: copy_lock == me + 1 -> copy_lock = Nobody :: else fi;
        log_was_lost = true;
        at[me] = serve;
        check() }
    :: at[me] == off && (starts == 0 || converted) -> break
    od
}

#ifdef NO_CHECKPOINT_GUARD
#define checkpoints_unguarded (Connected(0) || Connected(1))
#else
#define checkpoints_unguarded other_is_connected
#endif

/* The app writes through its pool while the gate is open, and the other program writes. */
#define a_store_writes ((Connected(0) && writers_wait != 1) || (Connected(1) && writers_wait != 2))
#define can_write (other_is_connected || a_store_writes)

proctype Writers() {
    byte u;
end:
    do
    :: atomic { can_write && !converted && is_wal && exclusive == Nobody && write_lock == Nobody && commits < COMMITS &&
        (last_frame < FRAMES || (backfilled >= last_frame && !pins_hold)) ->
        if :: u = 0 :: u = 1 fi;
        commits++;
        append(u, commits);
        truth[u] = commits;
        if :: synced = last_frame :: skip fi;
#ifndef REKEY
        if :: commits == 2 -> unmapped[last_frame] = true :: skip fi;
#endif
        u = 0;
        check() }
    :: atomic { other_is_connected && !converted && !is_wal && exclusive == Nobody && commits < COMMITS ->
        if :: u = 0 :: u = 1 fi;
        commits++;
        file[u] = commits;
        truth[u] = commits;
        was_written = true;
        u = 0;
        check() }
    :: atomic { other_is_connected && !converted && !is_wal && exclusive == Nobody -> is_wal = true }

#ifndef ALONE
    /* The store's own checkpoint, under a writer's lock. */
    :: atomic { a_store_writes && !converted && is_wal && exclusive == Nobody &&
        write_lock == Nobody && backfilled < last_frame ->
        backfill(last_frame);
        check() }
    :: atomic { !other_is_connected && !converted && exclusive == Nobody -> other_is_connected = true }
#endif
    :: atomic { other_is_connected && is_wal && write_lock == Nobody && backfilled < last_frame ->
        backfill(last_frame);
        log_was_lost = log_was_lost || backfilled == last_frame;
        check() }
    /* The last close copies the log into the file and deletes the log. */
    :: atomic { other_is_connected ->
        other_is_connected = false;
        if
        :: is_wal && !Connected(0) && !Connected(1) -> end_log(); log_was_lost = true
        :: else
        fi;
        check() }
#if defined(NO_CHECKPOINT_GUARD) || defined(WITHOUT_CHECKPOINT_GUARD_ELSEWHERE)
    /* A bug in SQLite: a checkpoint reads the header of the log, and still uses it after others have restarted the log. */
    :: atomic { checkpoints_unguarded && is_wal && stale_last == 0 && last_frame > 0 && exclusive == Nobody ->
        stale_last = last_frame;
        stale_salt = salt }
    :: atomic { stale_last > 0 ->
        if
        :: salt == stale_salt -> backfill(stale_last)
        :: salt != stale_salt && is_wal -> backfilled = stale_last
        :: else
        fi;
        stale_last = 0;
        stale_salt = 0;
        check() }
#endif
    od
}

proctype Faults() {
end:
    do
    :: atomic { kills > 0 && at[0] != off && !converted -> kills--; end_launch(0); check() }
    :: atomic { kills > 0 && at[1] != off && !converted -> kills--; end_launch(1); check() }
    :: atomic { kills > 0 && other_is_connected && !converted -> kills--; other_is_connected = false }
    :: atomic { power_losses > 0 ->
        power_losses--;
        mark_is_of_this_start = false;
        end_process(0);
        end_process(1);
        other_is_connected = false;
        if
        :: converted -> skip
        :: else ->
            do
            :: last_frame > synced ->
                unit[last_frame] = 0; version[last_frame] = 0; unmapped[last_frame] = false;
                last_frame--
            :: break
            od;
            synced = last_frame;
            backfilled = (last_frame == 0 -> 0 : backfilled);
            log_was_lost = true;
            present(0); truth[0] = seen;
            present(1); truth[1] = seen
        fi;
        if :: copy[0] = copy_disk[0] :: skip fi;
        if :: copy[1] = copy_disk[1] :: skip fi;
        copy_disk[0] = copy[0];
        copy_disk[1] = copy[1];
        check() }
    od
}

#ifdef ALONE
/* If no other program keeps WAL mode on, an app that is started once more than it is killed finishes the conversion. */
ltl I8_finishes { <> converted }
#endif

init {
    atomic {
        run App(0);
#ifdef TWO_AT_ONCE
        run App(1);
#endif
        run Writers();
        run Faults()
    }
}
