/// What a call did to the recorded folder.
struct Operation {
    enum Change {
        case create(String, file: Int, mode: Int)
        case createNameless(file: Int, mode: Int)
        /// A file without a name gets a name.
        case name(file: Int, String)
        case write(file: Int, at: Int, [UInt8])
        case truncate(file: Int, to: Int)
        case setMode(file: Int, Int)
        case syncFile(Int)
        case syncFolder
        case rename(String, to: String)
        case exchange(String, String)
        case link(String, to: String)
        case unlink(String)
        /// The subject printed a row number: the row's transaction is acknowledged.
        case acknowledge(Int)
    }

    let change: Change
    /// The lines of the trace at which the call began and ended.
    ///
    /// A sync covers what had ended when it began.
    let began: Int
    let ended: Int
}
