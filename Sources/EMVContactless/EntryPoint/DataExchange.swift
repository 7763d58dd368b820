public import SmartCard

/// What a kernel tells the terminal while the card is there, and what it wants of it (EMV Contactless Book C-2, 4.2 and 5.2:
/// the signal DEK).  The terminal answers with data objects (DET).
public struct DataExchange: Hashable, Sendable {
    /// Data Needed, DF8106: what the kernel wants to be told, in the order in which it met them.
    public var dataNeeded: [TLVTag]
    /// Data To Send, FF8104: what the terminal had asked for.  An empty value stands for what the card does not have.
    public var dataToSend: DataRecord

    public init(dataNeeded: [TLVTag] = [], dataToSend: DataRecord = DataRecord()) {
        self.dataNeeded = dataNeeded
        self.dataToSend = dataToSend
    }
}
