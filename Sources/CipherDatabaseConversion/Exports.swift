// One import is enough for an app that encrypts its database and opens it with its own SQLite wrapper.
@_exported public import CipherKeyProviders
@_exported public import CipherSQLite
