// The platform's C library and the part of Foundation that the sources use. All other targets import these through this
// one, so each platform is named here only. FoundationEssentials is preferred, because Foundation links 34 MB of ICU.
#if canImport(Glibc)
    @_exported public import Glibc
#elseif canImport(Musl)
    @_exported public import Musl
#elseif canImport(Android)
    @_exported public import Android
#else
    @_exported public import Darwin
#endif

#if canImport(FoundationEssentials) && !CIPHERSTORE_PORTABLE
    @_exported public import FoundationEssentials
#else
    @_exported public import Foundation
#endif

extension stat {
    /// The time of the last change to the file's content.
    package var modified: timespec {
        #if canImport(Darwin)
            st_mtimespec
        #else
            st_mtim
        #endif
    }
}

/// Gets the process's limit on the size of a file: `getrlimit`, whose constants differ in type.
package func getFileSizeLimit(_ limit: inout rlimit) -> Int32 {
    #if canImport(Glibc)
        getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
    #else
        getrlimit(RLIMIT_FSIZE, &limit)
    #endif
}

/// Returns a number that identifies the calling thread while it runs.
package func threadIdentity() -> UInt {
    #if canImport(Glibc)
        pthread_self()
    #else
        UInt(bitPattern: pthread_self())
    #endif
}
