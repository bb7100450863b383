internal import CCipherSystem
internal import CipherErrors

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

cs_protect_memory()
cs_open_standard_streams()
cs_fit_memory_to_limit()

// `CommandLine.arguments` replaces bytes that are not UTF-8, and would then name another file.
let arguments = (1..<max(1, Int(CommandLine.argc))).compactMap {
    CommandLine.unsafeArgv[$0].map { SystemPath.text(cString: $0) }
}
exit(Tool.run(arguments))
