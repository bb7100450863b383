package import CipherSQLite

/// Prints the rows of a query in one format.
package protocol RowWriter: AnyObject {
    func begin() throws
    func write(_ row: borrowing Row) throws
    func end() throws
}

/// Returns the hexadecimal digits of bytes.
func hexadecimal(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}
