// One import is enough for an app: what it names in its first hour is declared in these modules.
@_exported public import CipherDatabaseConversion
@_exported public import CipherHistory
@_exported public import CipherPriorSystems
@_exported public import CipherSchemaMigration
@_exported public import CipherSecretServiceKeys
