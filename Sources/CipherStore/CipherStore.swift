@_exported public import CipherSQLite
