/* The offline swap, as implemented in Operations/Conversion, Preparation/SourceHold, Swap/Swap and Swap/ReplacedFile.
 *
 * The model has two launches of the app, another program with one connection, and everything that can end a process.
 * Each `atomic` is one step: before and after each step, a process can be killed and the power can fail. Rows are bits:
 * a file contains a set of commits. There are two inodes: Original, and Copy, which each launch makes anew.
 *
 * Scripts/model checks the model, and removes each guard (-DNO_...) and each assumption (-DWITHOUT_...) separately.
 */

#ifndef STARTS
#define STARTS 3 /* the total number of launches */
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef POWER_LOSSES
#define POWER_LOSSES 1
#endif

#define None 0
#define Original 1
#define Copy 2

/* Who has a lock: None, a launch (its number plus 1), or the other program. */
#define Other 3

mtype = {
    off, lock_folder, inspect, ask_lease, record, quiesce_checkpoint, quiesce_mode, reserve, create, build, prove, sync_copy,
    sync_folder, close_all, exclude, look, exchange, check_exchange, sync_rename, remove_name, sync_removal, spoil, end_hold,
    give_back, settle, retire_key, serve, serve_write, serve_commit, refuse, leave
};

/* What the names refer to: as processes see them, and as they are on the disk if the power fails now. */
byte db = Original, db_disk = Original;
byte aside = None, aside_disk = None;    /* app.db-upgrade-TOKEN */
byte journal = None, journal_disk = None; /* a hot app.db-journal: the inode to which it belongs */
byte log_of = None;                      /* app.db-wal: the inode to which it belongs */
byte log_rows;
byte journal_rows;                       /* the rows after a rollback */
bool has_record, has_record_disk;        /* app.db-attempt */
bool record_says_wal;

/* Contents. A write is durable when SQLite acknowledges it. */
byte rows;                               /* Original */
bool original_is_wal, original_is_spoiled;
byte copy_rows, copy_rows_disk;
bool copy_is_whole, copy_is_whole_disk, copy_is_wal, copy_has_fault;

/* Locks. The folder's lock is from flock, the lease is from the kernel, and the others are SQLite's locks on Original. */
byte folder_lock, reserved, exclusive, lease;

byte acknowledged;
bool app_uses_wal;                       /* the original journal mode of the file */
bool system_tells;                       /* whether leases work here */
bool old_key_is_gone;

mtype at[2] = off;
bool has_open[2], is_proven_alone[2], is_durable[2];
byte rows_at_rest[2];
byte starts = STARTS, kills = KILLS, power_losses = POWER_LOSSES;
bool store_wrote;

bool other_is_open, other_waits_for_lease, other_in_wal;
byte other_transaction;                  /* 0, 1 journal written, 2 file written */
byte other_commits;

#define Rows(inode) ((inode) == Copy -> copy_rows : rows)
#define Whole(inode) ((inode) == Copy -> copy_is_whole || journal == Copy : !original_is_spoiled)
#define Present ((journal == db && journal != None -> journal_rows : Rows(db)) | (log_of == None -> 0 : log_rows))
#define Reads(p) (has_open[p] && at[p] != quiesce_checkpoint)

/* What Swap.commit checks last. */
#define sidecar (journal != None || log_of != None)
#ifdef NO_SIDECAR_CHECK_AT_REST
#define has_sidecar_at_rest false
#else
#define has_sidecar_at_rest sidecar
#endif
#ifdef NO_SIDECAR_CHECK
#define has_sidecar false
#else
#define has_sidecar sidecar
#endif
#ifdef NO_STATE_CHECK
#define has_changed(p) false
#else
#define has_changed(p) (rows != rows_at_rest[p] || original_is_wal)
#endif

hidden byte R_is_not_reached; /* fails where it is reached, for -DREACH_... */
/* The invariants have names, because the verifier prints them. */
hidden byte I1_the_name_holds_one_whole_file, I1_no_sidecar_of_another_file;
hidden byte I2_acknowledged_rows_are_there, I3_copy_equals_original_at_the_rename, I6_no_plaintext_is_left;
hidden byte I8_no_build_is_wasted, I7_journal_mode_is_given_back, I8_a_refusal_has_a_cause, I8_nothing_is_left_behind, K_a_key_opens_the_file;

inline check() {
    I1_the_name_holds_one_whole_file = Whole(db);
    assert(I1_the_name_holds_one_whole_file);
    I1_no_sidecar_of_another_file = (journal == None || journal == db) && (log_of == None || log_of == db);
    assert(I1_no_sidecar_of_another_file);
    I2_acknowledged_rows_are_there = (Present & acknowledged) == acknowledged;
    assert(I2_acknowledged_rows_are_there);
    I6_no_plaintext_is_left = aside != Original || db == Original || has_record;
    assert(I6_no_plaintext_is_left);
    I8_nothing_is_left_behind = aside == None || has_record;
    assert(I8_nothing_is_left_behind);
    K_a_key_opens_the_file = db == Copy || !old_key_is_gone;
    assert(K_a_key_opens_the_file)
}

inline sync_names() {
    db_disk = db;
    aside_disk = aside;
    journal_disk = journal;
    has_record_disk = has_record
}

/* What the system does when a process ends. The other program was told to restart, and does so first. */
inline end_process(p) {
    if
    :: exclusive == p + 1 && db == Copy ->
#ifndef WITHOUT_RESTART
        other_is_open = false;
        other_in_wal = false;
        other_transaction = 0;
        other_waits_for_lease = false;
#endif
        skip
    :: else
    fi;
    if :: folder_lock == p + 1 -> folder_lock = None :: else fi;
    if :: reserved == p + 1 -> reserved = None :: else fi;
    if :: exclusive == p + 1 -> exclusive = None :: else fi;
    if :: lease == p + 1 -> lease = None :: else fi;
    has_open[p] = false;
    is_proven_alone[p] = false;
    is_durable[p] = false;
    rows_at_rest[p] = 0;
    at[p] = off
}

inline end_other() {
    other_is_open = false;
    other_in_wal = false;
    other_transaction = 0;
    other_waits_for_lease = false;
    if :: reserved == Other -> reserved = None :: else fi
}

/* The record is removed last, and only after what it names is known to be gone: if the sync fails, the record stays. */
inline forget() {
    if
#ifndef NO_SYNC_BEFORE_FORGETTING
    :: sync_names(); has_record = false
    :: skip
#else
    :: has_record = false
#endif
    fi
}

inline sweep() {
    /* The record identifies the file by its inode. It may also be an original that the copy has replaced. */
#ifndef NO_SWEEP
    aside = None;
#endif
    skip
}

inline roll_back() {
    if
    :: journal == Original -> rows = journal_rows; journal = None
    :: else
    fi
}

/* The cause is another program or a fault in the builder. It is never the other launch of the app, which waits or finds the
 * file converted. */
inline refuse_for_cause() {
    I8_a_refusal_has_a_cause = other_is_open || other_waits_for_lease || copy_has_fault || has_changed(me) || sidecar;
    assert(I8_a_refusal_has_a_cause);
    at[me] = refuse
}

#define others_open (other_is_open || has_open[1 - me])

proctype Launch(byte me) {
    do
    :: atomic { at[me] == off && starts > 0 && folder_lock == None ->
        starts--;
#ifndef NO_FOLDER_LOCK
        folder_lock = me + 1;
#endif
        at[me] = inspect }

    :: atomic { at[me] == inspect ->
        if
        :: db == Copy -> at[me] = settle
        :: db == Original -> at[me] = ask_lease
        fi }

    /* SoleOwnership.find */
    :: atomic { at[me] == ask_lease ->
        if
        :: system_tells && others_open -> refuse_for_cause()
        :: system_tells && !others_open -> is_proven_alone[me] = true; at[me] = record
        :: !system_tells -> at[me] = record
        fi }

    :: atomic { at[me] == record ->
        sweep();
        record_says_wal = original_is_wal || (has_record && record_says_wal);
        has_record = true;
        has_record_disk = true;
        sync_names();
        at[me] = quiesce_checkpoint;
        check() }

    /* SourceHold: the log is merged into the file and removed under an exclusive lock. */
    :: atomic { at[me] == quiesce_checkpoint ->
        has_open[me] = true;
        if
        :: db != Original || other_in_wal || other_transaction > 0 || reserved != None || exclusive != None ||
            Reads(1 - me) -> refuse_for_cause()
        :: else ->
            exclusive = me + 1;
            roll_back();
#ifndef NO_LOG_MERGE
            rows = rows | (log_of == Original -> log_rows : 0);
            log_rows = (log_of == Original -> 0 : log_rows);
            log_of = (log_of == Original -> None : log_of);
#endif
            at[me] = quiesce_mode
        fi;
        check() }
    /* A transaction that writes the header. The creation of its journal is synced, but the removal is not. */
    :: atomic { at[me] == quiesce_mode ->
        if
        :: original_is_wal ->
            original_is_wal = false;
            sync_names();
            journal_disk = Original;
            journal_rows = rows
        :: else
        fi;
        exclusive = None;
        at[me] = reserve;
        check() }
    :: atomic { at[me] == reserve ->
        if
        :: reserved != None || exclusive != None || original_is_wal || other_in_wal || has_sidecar_at_rest -> refuse_for_cause()
        :: else ->
#ifndef NO_WRITER_LOCK
            reserved = me + 1;
#endif
            rows_at_rest[me] = rows;
            at[me] = create
        fi }

    :: atomic { at[me] == create ->
        aside = Copy;
        copy_rows = 0; copy_rows_disk = 0;
        copy_is_whole = false; copy_is_whole_disk = false;
        copy_is_wal = false; copy_has_fault = false;
        at[me] = build;
        check() }
    /* One read transaction. The builder may have a fault, which the proof must find. */
    :: atomic { at[me] == build && other_transaction < 2 ->
        copy_rows = rows;
        copy_is_whole = true;
        if :: copy_has_fault = true :: copy_has_fault = false fi;
        at[me] = prove;
        check() }
    :: atomic { at[me] == prove && other_transaction < 2 ->
        if
#ifndef NO_PROOF
        :: copy_has_fault || copy_rows != rows -> refuse_for_cause()
        :: else -> at[me] = sync_copy
#else
        :: at[me] = sync_copy
#endif
        fi }
    :: atomic { at[me] == sync_copy ->
#ifndef NO_COPY_SYNC
        copy_rows_disk = copy_rows;
        copy_is_whole_disk = copy_is_whole;
#endif
        at[me] = sync_folder }
    :: atomic { at[me] == sync_folder ->
#ifndef NO_FOLDER_SYNC_BEFORE
        sync_names();
#endif
        at[me] = close_all }

    /* ReplacedFile closes every connection and takes the lease, or takes SQLite's exclusive lock on the same descriptor. */
    :: atomic { at[me] == close_all ->
        if
        :: is_proven_alone[me] ->
            if :: reserved == me + 1 -> reserved = None :: else fi;
            has_open[me] = false;
            at[me] = exclude
        :: else -> at[me] = exclude
        fi }
    :: atomic { at[me] == exclude ->
        if
        :: is_proven_alone[me] ->
            if
#ifndef NO_LEASE_AT_RENAME
            :: others_open -> refuse_for_cause()
            :: else -> lease = me + 1; exclusive = me + 1; at[me] = look
#else
            :: at[me] = look
#endif
            fi
        :: else ->
            if
#ifndef NO_EXCLUSIVE_LOCK
            :: other_transaction > 0 || other_in_wal || Reads(1 - me) || exclusive != None ->
                refuse_for_cause()
            :: else -> exclusive = me + 1; at[me] = look
#else
            :: at[me] = look
#endif
            fi
        fi }
    /* Swap.commit: the last check, then the rename. */
    :: atomic { at[me] == look ->
        I8_no_build_is_wasted = is_proven_alone[me] || !(rows != rows_at_rest[me] || original_is_wal || sidecar);
        assert(I8_no_build_is_wasted);
        if
        :: db != Original || aside != Copy || has_changed(me) || has_sidecar || other_waits_for_lease -> refuse_for_cause()
        :: else -> at[me] = exchange
        fi }
    :: atomic { at[me] == exchange ->
        I3_copy_equals_original_at_the_rename =
            aside == Copy && copy_is_whole && !copy_has_fault && copy_rows == (rows | (log_of == None -> 0 : log_rows));
        assert(I3_copy_equals_original_at_the_rename);
        db = Copy;
        aside = Original;
        at[me] = sync_rename;
        check() }

    /* Swap.finish. A failed sync is reported, and what depends on it is not done. */
    :: atomic { at[me] == sync_rename ->
        if
        :: sync_names(); is_durable[me] = true
        :: is_durable[me] = false
        fi;
#ifdef NO_SYNC_BEFORE_SPOILING
        is_durable[me] = true;
        db_disk = Original;
#endif
        at[me] = remove_name }
    :: atomic { at[me] == remove_name ->
        aside = None;
        at[me] = sync_removal;
        check() }
    :: atomic { at[me] == sync_removal ->
#ifndef NO_SYNC_BEFORE_SPOILING
        if :: sync_names() :: skip fi;
#endif
        at[me] = spoil }
    :: atomic { at[me] == spoil ->
        original_is_spoiled = original_is_spoiled || is_durable[me];
        at[me] = end_hold;
        check() }
    :: atomic { at[me] == end_hold ->
        if
        :: lease == me + 1 && !other_waits_for_lease ->
            lease = None;
            exclusive = None
        :: lease == me + 1 && other_waits_for_lease ->
            lease = None;
#ifdef REACH_WAITING_OPEN
            R_is_not_reached = false;
            assert(R_is_not_reached);
#endif
#ifdef NO_WAITING_OPEN_CHECK_AFTER
            exclusive = None;
#endif
            skip
        :: else ->
#ifdef NO_KEPT_LOCK
            exclusive = None;
#endif
            if :: reserved == me + 1 -> reserved = None :: else fi
        fi;
        has_open[me] = false;
        at[me] = settle }

    /* Attempts.end, also of a later launch that finds the file converted. */
    :: atomic { at[me] == settle && at[1 - me] != serve_write && at[1 - me] != serve_commit ->
        if
        :: journal == Copy -> /* played back, and synced */
            copy_is_whole = true; copy_is_whole_disk = true;
            copy_rows = journal_rows; copy_rows_disk = journal_rows;
            journal = None
        :: else
        fi;
        if :: has_record -> sweep() :: else fi;
        if
        :: has_record && record_says_wal && journal == None -> copy_is_wal = true; sync_names()
        :: else
        fi;
        if :: has_record -> forget() :: else fi;
        at[me] = retire_key;
        check() }
    :: atomic { at[me] == retire_key ->
#ifndef NO_SYNC_BEFORE_RETIRING
        sync_names();
#endif
        old_key_is_gone = true;
        folder_lock = (folder_lock == me + 1 -> None : folder_lock);
        at[me] = serve;
        check() }

    /* The store writes one row, into its log or with a journal. SQLite syncs the folder with the first sync of either. */
    :: atomic { at[me] == serve && db == Copy && !store_wrote && journal == None ->
        store_wrote = true;
        sync_names();
        if
        :: copy_is_wal -> log_of = Copy; log_rows = log_rows | 4; acknowledged = acknowledged | 4; at[me] = leave
        :: else -> journal = Copy; journal_disk = Copy; journal_rows = copy_rows; at[me] = serve_write
        fi;
        check() }
    :: atomic { at[me] == serve_write ->
        copy_is_whole = false;           /* half of its pages are written */
        at[me] = serve_commit }
    :: atomic { at[me] == serve_commit ->
        if
        :: journal == Copy ->
            copy_is_whole = true; copy_is_whole_disk = true;
            copy_rows = copy_rows | 4; copy_rows_disk = copy_rows;
            journal = None; journal_disk = None;
            acknowledged = acknowledged | 4
        :: else
        fi;
#ifdef REACH_COMMIT_AFTER_KILL_AND_POWER_LOSS
        R_is_not_reached = kills > 0 || power_losses > 0 || acknowledged != 7;
        assert(R_is_not_reached);
#endif
        at[me] = leave;
        check() }
    :: atomic { at[me] == serve -> at[me] = leave }

    /* A refusal releases the locks, removes what was made, and restores the journal mode. */
    :: atomic { at[me] == refuse ->
        if :: reserved == me + 1 -> reserved = None :: else fi;
        if :: exclusive == me + 1 -> exclusive = None :: else fi;
        if :: lease == me + 1 -> lease = None :: else fi;
        has_open[me] = false;
        if
        :: has_record && db == Original -> sweep(); at[me] = give_back
        :: else -> at[me] = leave
        fi;
        check() }
    :: atomic { at[me] == give_back ->
        if
        :: other_transaction > 0 || reserved != None || exclusive != None -> skip /* the record stays */
        :: else ->
            roll_back();
#ifndef NO_MODE_RESTORED
            original_is_wal = original_is_wal || record_says_wal;
#endif
            forget();
            I7_journal_mode_is_given_back = original_is_wal || !app_uses_wal;
            assert(I7_journal_mode_is_given_back)
        fi;
        at[me] = leave;
        check() }
    :: atomic { at[me] == leave -> end_process(me); check() }
    :: at[me] == off && starts == 0 -> break
    od
}

/* A program that knows SQLite's locks but not ours. It cannot read the new file. */
proctype Program() {
end:
    do
    :: atomic { !other_is_open && !other_waits_for_lease && db == Original && lease == None -> other_is_open = true }
    :: atomic { !other_is_open && !other_waits_for_lease && db == Original && lease != None ->
        other_waits_for_lease = true }
    :: atomic { other_waits_for_lease && lease == None -> other_waits_for_lease = false; other_is_open = true }

    /* SQLite takes a shared lock and looks for a journal and a log by name before it reads page 1. */
    :: atomic { other_is_open && other_transaction == 0 && !other_in_wal && exclusive == None ->
        if
        :: journal != None && reserved == None ->
            if :: journal == Original -> rows = journal_rows :: else fi;
            journal = None; journal_disk = None
        :: else
        fi;
        if
        :: log_of == Copy -> log_of = None; log_rows = 0 /* copied into the old inode, and deleted at the end */
        :: else
        fi;
        if
        :: original_is_spoiled -> skip
        :: else ->
            if
            :: original_is_wal -> other_in_wal = true
            :: !original_is_wal && reserved == None && other_commits < 2 && journal == None ->
                reserved = Other;
                journal = Original; journal_disk = Original; journal_rows = rows;
                other_transaction = 1
            :: !original_is_wal && reserved == None && !Reads(0) && !Reads(1) && journal == None && !app_uses_wal &&
                db == Original ->
                /* A change of the mode after the mode was recorded is lost, but no row is lost. */
                original_is_wal = true; app_uses_wal = app_uses_wal || !has_record; other_in_wal = true
            :: skip
            fi
        fi;
        check() }
    :: atomic { other_transaction == 1 && exclusive == None && !Reads(0) && !Reads(1) ->
        rows = rows | (1 << other_commits);
        other_transaction = 2;
        check() }
    :: atomic { other_transaction == 2 ->
        acknowledged = acknowledged | (1 << other_commits);
        other_commits++;
        journal = None; journal_disk = None;
        reserved = None;
        other_transaction = 0;
        check() }
    :: atomic { other_in_wal && other_commits < 2 ->
        if :: log_of == None -> sync_names() :: else fi; /* SQLite does this with the first sync of a log */
        log_of = Original;
        log_rows = log_rows | (1 << other_commits);
        acknowledged = acknowledged | (1 << other_commits);
        other_commits++;
        check() }
    :: atomic { other_is_open && other_transaction == 0 ->
        if
        :: other_in_wal && !has_open[0] && !has_open[1] && log_of == Original ->
            rows = rows | log_rows; log_of = None; log_rows = 0
        :: else
        fi;
        end_other();
        check() }
    od
}

proctype Faults() {
end:
    do
    :: atomic { kills > 0 && at[0] != off -> kills--; end_process(0); check() }
    :: atomic { kills > 0 && at[1] != off -> kills--; end_process(1); check() }
    :: atomic { kills > 0 && other_is_open -> kills--; end_other(); check() }
    :: atomic { power_losses > 0 ->
        power_losses--;
        end_process(0);
        end_process(1);
        end_other();
        if :: db = db_disk :: skip fi;
        if :: aside = aside_disk :: skip fi;
        if :: journal = journal_disk :: skip fi;
        if :: has_record = has_record_disk :: skip fi;
        if :: copy_rows = copy_rows_disk; copy_is_whole = copy_is_whole_disk :: skip fi;
        copy_rows_disk = copy_rows; copy_is_whole_disk = copy_is_whole;
        sync_names();
        check() }
    od
}

init {
    atomic {
        if :: system_tells = true :: system_tells = false fi;
        if :: original_is_wal = true; app_uses_wal = true :: skip fi;
        run Launch(0);
        run Launch(1);
        run Program();
        run Faults()
    }
}
