// The errors, the bytes of keys, and the cancellation that this module's own interface names.
@_exported public import CipherErrors
@_exported public import CipherPrimitives
@_exported public import CipherSystemFiles
