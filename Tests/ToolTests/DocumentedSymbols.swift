/// What the examples in doc comments take for granted, by the file below `Sources`.
enum DocumentedSymbols {
    struct Context {
        let imports: [String]
        /// Parameters of the function whose body the example is.
        let given: String
        /// Declarations before it.
        let before: String

        init(_ imports: String = "", given: String = "", before: String = "") {
            self.imports = imports.split(separator: " ").map(String.init)
            self.given = given
            self.before = before
        }
    }

    /// Grammars, tables, JSON and words, which are set like code: the first lines of such blocks.
    static let otherBlocks: Set<Substring> = [
        "file      = statement", "1 40 SDA supported              when all bits of the mask are set",
        "DF8118 1 40    pinPad,online         +", "{", "repeat {",
        "4761739001010010   ->   476173******0010",
    ]

    static let contexts: [String: Context] = [
        "CardReaderAdapter/Processors/SandboxPaymentProcessor.swift": .init(
            "Foundation ProximityReader",
            given: "configuration: ProximityReaderSystem.ValidatedConfiguration"),
        "CardReaderAdapter/Service/ContactlessReaderService.swift": .init(
            "ProximityReader",
            given:
                "MyPaymentService: () -> any PaymentProcessor, configuration: ProximityReaderSystem.ValidatedConfiguration, shop: any CardReaderConfigProvider"
        ),
        "CardReaders/Machine.swift": .init(
            "SmartCard"),
        "CardReaders/ReaderCommands.swift": .init(
            "SmartCard",
            given: "reader: any CardReader"),
        "CardReaders/Stack.swift": .init(
            "Logging SmartCard",
            given: "reader: any CardReader, logger: Logger, card: any CardConnection"),
        "ComposableCheckout/Composition/CompositionRoot.swift": .init(
            "KioskKit",
            given:
                "repository: any ConfigurationRepository & PaymentMethodRepository & TokenizationRepository & PaymentRepository, service: TapToPayService"
        ),
        "ComposableCheckout/Data/HTTPCheckoutRepository.swift": .init("Foundation"),
        "ComposableCheckout/Machinery/ComposableContainer.swift": .init(
            given: "MyPayments: @escaping @Sendable () -> any PaymentRepository"),
        "ComposableCheckout/Scopes/CheckoutScope.swift": .init(
            given: "root: CompositionRoot", before: "func show(_ state: CheckoutState) {}"),
        "ComposableCheckout/Texts/InputLocalizable.swift": .init(),
        "ContactlessMetrics/Exposition.swift": .init("CoreMetrics"),
        "EMVContactless/Dictionary/DataElement.swift": .init(
            "SmartCard"),
        "EMVContactless/EntryPoint/ContactlessTerminal.swift": .init(
            "SmartCard",
            given: "reader: any CardReader, transaction: Transaction"),
        "EMVContactless/EntryPoint/KernelRegistration.swift": .init(
            "SmartCard",
            given: "blockedCards: Set<String>",
            before:
                "typealias DomesticKernel = Kernel3; @Sendable func ExpressKernel(_ activation: KernelActivation, blockedCards: Set<String>) -> Kernel3 { Kernel3(activation) }"
        ),
        "EMVContactless/OfflineAuthentication/OfflineDataAuthentication.swift": .init(
            "SmartCard",
            given: "aid: AID, date: CalendarDate, records: StaticDataToBeAuthenticated, objects: [TLVTag: [UInt8]]"),
        "KioskBridge/Host/BridgeHost.swift": .init(),
        "KioskBridgeServer/BridgeServer.swift": .init(
            "KioskBridge", given: "host: BridgeHost, files: [String: BridgeServer.File]"),
        "KioskKit/TapTransaction/TapTransactions.swift": .init(
            "ProximityReader",
            given: "transactions: TapTransactions, service: TapToPayService",
            before: "func show(_ value: Any) {}"),
        "SmartCard/ExchangeStopwatch.swift": .init(
            given: "channel: any CardChannel, command: CommandAPDU"),
        "SmartCard/SensitiveData.swift": .init(
            before: "func masked(_ value: [UInt8], of tag: TLVTag) -> String { SensitiveData.masked(value, of: tag) }"),
        "SmartCard/StatusWord.swift": .init(
            given: "response: ResponseAPDU"),
        "SmartCardPCSC/PCSCFeatures.swift": .init(
            "SmartCard",
            given: "card: PCSCCard"),
        "SmartCardPCSC/PCSCService.swift": .init(
            "SmartCard"),
        "SmartCardPN532/ACR122U.swift": .init(
            "SmartCard",
            given: "pcscReader: any CardReader"),
        "SmartCardPN532/MIFAREClassic.swift": .init(
            "SmartCard",
            given: "connection: any CardConnection, key: [UInt8]"),
        "SmartCardPN532/PN532Field.swift": .init(
            "EMVContactless SmartCard",
            given: "reader: any CardReader, terminal: ContactlessTerminal, transaction: Transaction"),
        "SmartCardPN532/Polling.swift": .init(
            "SmartCard",
            given: "reader: ACR122U"),
        "SmartCardPN532/Serial/PN532Reader.swift": .init(
            "SmartCard"),
        "SmartCardPN532/Type2Tag.swift": .init(
            "SmartCard",
            given: "connection: any CardConnection"),
        "SmartCardPN532/Type4Tag.swift": .init(
            "SmartCard",
            given: "connection: any CardConnection"),
        "SmartCardSimulator/Card/CardFile.swift": .init(
            given: "text: String"),
        "SmartCardSimulator/ObservedCard.swift": .init(
            "Testing",
            given: "visa: any VirtualCard, reader: SoftwareACR122U"),
        "SmartCardSimulator/Reader/SoftwareACR122U.swift": .init(
            given: "card: any VirtualCard"),
        "SmartCardSimulator/Reader/SoftwarePN532Board.swift": .init(
            given: "card: any VirtualCard"),
        "SmartCardSimulator/Reader/VirtualReader.swift": .init(
            "SmartCard",
            given: "card: any VirtualCard"),
        "SmartCardTrace/Formats/TraceExport.swift": .init(
            "Foundation",
            given: "file: (write: ([UInt8]) throws -> Void, name: String), source: TraceReader",
            before: "var trace = source"),
        "SmartCardTrace/Raising/LayerRaiser.swift": .init(
            before: "var capture = try TraceImport(path: \"capture\")"),
        "SmartCardTrace/Recording/TraceRecorder.swift": .init(
            "SmartCard",
            given: "reader: any CardReader"),
        "SmartCardTrace/Redaction/TraceRedaction.swift": .init(
            given: "trace: Trace"),
        "SmartCardTrace/Replay/ReplayReader.swift": .init(
            "EMVContactless SmartCard",
            given: "terminal: ContactlessTerminal, transaction: Transaction"),
        "SmartCardUSB/USBReaders.swift": .init(
            "SmartCard"),
        "TravelDocument/Belief/PassiveAuthentication.swift": .init(
            "Foundation",
            given: "file: [UInt8], dg1: [UInt8], dg2: [UInt8], trust: TrustList"),
        "TravelDocument/Parsing/NameAgreement.swift": .init(
            given: "details: AdditionalPersonalDetails, zone: MachineReadableZone"),
        "TravelDocument/TravelDocumentChip.swift": .init(
            "CardReaders SmartCard",
            given: "reader: any CardReader, card: any CardConnection, lines: String"),
        "Waiting/Delivery.swift": .init(
            "SmartCard",
            given: "device: (read: (@escaping ([UInt8]) -> Void) -> Void, name: String)"),
        "Waiting/Multicast.swift": .init(
            before: "enum PrinterState { case ready, outOfPaper }; func show(_ state: PrinterState) {}"),
        "Waiting/Signal.swift": .init(
            given: "state: Lock<(isOver: Bool, count: Int)>, changed: Signal"),
        "Waiting/Turn.swift": .init(
            given: "turn: Turn"),
    ]
}
