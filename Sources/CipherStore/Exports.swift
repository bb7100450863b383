// One import is enough for an app: these modules declare everything that an app needs at first.
@_exported public import CipherDatabaseConversion
@_exported public import CipherHistory
@_exported public import CipherPriorSystems
@_exported public import CipherSchemaMigration
@_exported public import CipherSecretServiceKeys
