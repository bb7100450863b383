internal import CipherPlatform

/// The JSON in which a column stores a structure, an array or a dictionary.
///
/// Dates in the JSON are numbers of seconds since 1970. Keys are sorted, so that equal values have equal text.
enum ColumnJSON {
    static func text(_ value: some Encodable) throws -> Value {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .secondsSince1970
        return .text(String(decoding: try encoder.encode(value), as: UTF8.self))
    }

    static func decoder(_ text: [UInt8]) throws -> any Decoder {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .secondsSince1970
        return try decoder.decode(Grabbed.self, from: Data(text)).decoder
    }

    /// Captures the decoder of a JSON text, which is not available otherwise.
    private struct Grabbed: Decodable {
        let decoder: any Decoder

        init(from decoder: any Decoder) { self.decoder = decoder }
    }
}
