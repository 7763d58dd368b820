public import SmartCard

/// Data that a kernel sends to and requests from the terminal while the card is present (EMV Contactless Book C-2, 4.2
/// and 5.2: the signal DEK).  The terminal answers with data objects (DET).
public struct DataExchange: Hashable, Sendable {
    /// Data Needed, DF8106: the tags that the kernel requests, in the order in which it met them.
    public var dataNeeded: [TLVTag]
    /// Data To Send, FF8104: the data that the terminal requested.  An empty value stands for data that the card does
    /// not have.
    public var dataToSend: DataRecord

    public init(dataNeeded: [TLVTag] = [], dataToSend: DataRecord = DataRecord()) {
        self.dataNeeded = dataNeeded
        self.dataToSend = dataToSend
    }
}
