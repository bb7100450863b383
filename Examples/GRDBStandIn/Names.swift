// swift-format-ignore-file
// The names of GRDB's and SQLite.swift's public types, which an app may import in the same file as this library.

// GRDB
public struct Configuration { public init() {} }
public struct Row { public init() {} }
public struct SQL { public init() {} }
public struct Statement { public init() {} }
public struct DatabaseError: Error { public init() {} }
public struct Database { public init() {} }
public struct DatabaseValue { public init() {} }
public struct DatabaseMigrator { public init() {} }
public struct DatabaseBackup { public init() {} }
public struct DatabaseCollation { public init() {} }
public struct DatabaseFunction { public init() {} }
public struct DatabasePool { public init() {} }
public struct DatabaseQueue { public init() {} }
public struct ResultCode { public init() {} }
public struct TableAlteration { public init() {} }
public struct TransactionObserver { public init() {} }
public struct ValueObservation { public init() {} }
public struct Table { public init() {} }
public struct Column { public init() {} }
public struct Inflections { public init() {} }
public struct StatementArguments { public init() {} }
public struct RowDecodingError: Error { public init() {} }

// SQLite.swift
public struct Connection { public init() {} }
public struct Blob { public init() {} }
public struct View { public init() {} }
public struct VirtualTable { public init() {} }
public struct SchemaChanger { public init() {} }
public struct SchemaReader { public init() {} }
public struct Migration { public init() {} }
public struct Expression { public init() {} }
public struct Value { public init() {} }
public struct Setter { public init() {} }
public struct Module { public init() {} }
public struct Backup { public init() {} }
public struct Collation { public init() {} }
public struct Transaction { public init() {} }
public struct QueryType { public init() {} }
