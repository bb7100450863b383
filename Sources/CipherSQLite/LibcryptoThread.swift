internal import COpenSSL

/// What libcrypto keeps for a thread.
package enum LibcryptoThread {
    /// Frees what libcrypto keeps for the calling thread, which has no more use of it.
    ///
    /// Else the end of the thread does it. A process may end as soon as others know that the thread's work is done, and
    /// libcrypto then frees all it has, and that same memory with it, while the thread is still on its way out: both at
    /// once corrupt the heap.
    ///
    /// The corresponding C function is `OPENSSL_thread_stop`.
    package static func end() {
        OPENSSL_thread_stop()
    }
}
