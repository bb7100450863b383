"""The databases of the apps in Config, as those apps left them, and what each configuration may change."""

from __future__ import annotations

from dataclasses import dataclass

from equality import Allowed, Change

# What an app may have besides what its configuration knows.
_OWN = b"""CREATE TABLE setting(name TEXT, value BLOB);
        INSERT INTO setting(rowid, name, value) VALUES (4, 'theme', x'00ff'), (9, NULL, 2.5);
    CREATE TABLE kept(a UNIQUE, b); CREATE INDEX kept_b ON kept(b, a);
        INSERT INTO kept(rowid, a, b) VALUES (12, 1, 2), (7, 3, 4);
    CREATE VIEW names AS SELECT name FROM setting; PRAGMA application_id = 5;"""
# The same with names in GBK and Latin-1.
_INVALID = (
    """CREATE TABLE "prénom"(a); INSERT INTO "prénom" VALUES (1); CREATE TABLE person("prénom" TEXT, age INT);
    INSERT INTO person VALUES ('Anna', 30), ('Bo', NULL);""".encode("latin-1")
    + ('CREATE INDEX "姓名" ON person(age); CREATE VIEW "姓" AS SELECT 1;'.encode("gbk"))
)


@dataclass(frozen=True)
class Example:
    """A database of an app's version, with the configuration of a later one."""

    name: str
    configuration: str
    database: str
    script: bytes
    allowed: Allowed
    may_be_refused: bool = False


def all_examples() -> list[Example]:
    examples = []
    for example in (_numbered(), _app_versions(), _table_versions(), _template()):
        for label, own in (("", _OWN), (", names that are not UTF-8", _OWN + _INVALID)):
            examples.append(
                Example(
                    example.name + label, example.configuration, example.database, example.script + own,
                    example.allowed, may_be_refused=bool(label),
                )
            )  # fmt: skip
    return examples


def _numbered() -> Example:
    return Example(
        "NumberedSteps", "NumberedSteps/NumberedSteps.plist", "user.db",
        b"""CREATE TABLE db_version (db_version_num INTEGER); INSERT INTO db_version VALUES (3);
        CREATE TABLE user_info (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL);
        INSERT INTO user_info(name) VALUES ('Anna'), ('Bo'), ('gone'); DELETE FROM user_info WHERE id = 3;
        ALTER TABLE user_info ADD COLUMN age INTEGER; INSERT INTO user_info(name, age) VALUES ('Cy', 5);""",
        Allowed(4, {b"user_info": Change(), b"app_data": Change(), b"db_version": Change({b"db_version_num": None})}),
    )  # fmt: skip


def _app_versions() -> Example:
    return Example(
        "AppVersions", "AppVersions/AppVersions.json", "account.db",
        b"""CREATE TABLE tb_clientstage (id TEXT, tableno TEXT, version TEXT);
        INSERT INTO tb_clientstage VALUES ('1', '0', '1.2.0'), ('1', '7', '99');
        CREATE TABLE contact (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE outbox (id INTEGER PRIMARY KEY, body TEXT, sent INTEGER NOT NULL DEFAULT 0);
        ALTER TABLE contact ADD COLUMN phone TEXT; INSERT INTO contact VALUES (4, 'Anna', '+1'), (9, 'Bo', '+2');
        INSERT INTO outbox VALUES (3, 'not yet', 0), (8, x'00', 0);""",
        Allowed(None, {b"contact": Change(), b"outbox": Change(), b"tb_clientstage": Change({b"version": None})}),
    )  # fmt: skip


def _table_versions() -> Example:
    return Example(
        "TableVersions", "TableVersions/MessageStore.json", "im.db",
        b"""CREATE TABLE tableVersion(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, version DOUBLE);
        INSERT INTO tableVersion(name, version) VALUES ('chat', 1.2), ('contact', 1.9), ('attachment', 1);
        CREATE TABLE chat(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT, msg TEXT, sentAt INTEGER);
        CREATE TABLE contact(id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT);
        CREATE TABLE attachment(id INTEGER PRIMARY KEY AUTOINCREMENT, chatId INTEGER REFERENCES chat(id), content BLOB);
        INSERT INTO chat(id, uid, msg) VALUES (5, 'ana', 'hello'), (9, 'bo', NULL), (4294967296, 'ana',
        CAST(x'ff00' AS TEXT));
        INSERT INTO contact VALUES (3, 'ana'), (8, 'bo');
        INSERT INTO attachment VALUES (2, 9, x'00'), (4, 4294967296, x'');""",
        Allowed(3, {
            b"chat": Change({b"msg": b"body"}), b"contact": Change(), b"attachment": Change(),
            b"draft": Change(), b"tableVersion": Change({b"version": None}, may_gain_rows=True),
        }),
    )  # fmt: skip


def _template() -> Example:
    gains = Change(may_gain_rows=True)
    return Example(
        "Template", "Template/NoteStore.json", "dbLocal.db",
        b"""CREATE TABLE Records (name TEXT, value TEXT); INSERT INTO Records VALUES ('DBVersion', '1');
        CREATE TABLE note (id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT);
        CREATE TABLE category (code TEXT PRIMARY KEY, name TEXT); CREATE TABLE tip (text TEXT);
        INSERT INTO category (code, name) VALUES ('misc', 'Miscellaneous'), ('work', 'Arbeit'), ('trip', 'My trips');
        INSERT INTO tip VALUES ('Swipe to delete');
        INSERT INTO note (id, title) VALUES (5, 'first'), (9, NULL), (12, '');""",
        Allowed(3, {
            b"Records": Change({b"value": None}), b"note": gains, b"category": gains, b"tip": gains,
            b"unit": gains, b"change": gains, b"titles": gains,
        }),
    )  # fmt: skip
