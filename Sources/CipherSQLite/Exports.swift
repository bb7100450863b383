// The errors, the key bytes and the cancellation that this module's public interface uses.
@_exported public import CipherErrors
@_exported public import CipherPrimitives
@_exported public import CipherSystemFiles
