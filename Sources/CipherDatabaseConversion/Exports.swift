// One import is enough for an app that encrypts its database and opens it with an SQLite wrapper of its own.
@_exported public import CipherKeyProviders
@_exported public import CipherSQLite
