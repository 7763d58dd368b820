#if CUPS

import CCUPS
import Dispatch
import Foundation
import Waiting

/// A client for IPP requests to one printer, through libcups.  Only this file calls libcups.
///
/// Each request has its own connection and its own thread: libcups keeps its errors by thread, and blocks.
struct CUPSClient: Sendable {
    /// The printer's `ipp:` or `ipps:` URI, as requests name it.
    let uri: String
    private let host: String
    private let port: Int32
    private let resource: String
    private let isEncrypted: Bool
    private let queue = DispatchQueue(label: "ipp")

    /// Creates a client.
    ///
    /// - Returns: nil if the text is not an `ipp:` or `ipps:` URI.
    init?(uri: String) {
        var scheme = [CChar](repeating: 0, count: 32)
        var user = [CChar](repeating: 0, count: 256)
        var host = [CChar](repeating: 0, count: 256)
        var resource = [CChar](repeating: 0, count: 1024)
        var port: Int32 = 0
        let status = httpSeparateURI(
            HTTP_URI_CODING_ALL, uri, &scheme, 32, &user, 256, &host, 256, &port, &resource, 1024)
        guard status == HTTP_URI_STATUS_OK, ["ipp", "ipps"].contains(Self.text(scheme)), port > 0 else { return nil }
        self.uri = uri
        (self.host, self.port, self.resource) = (Self.text(host), port, Self.text(resource))
        isEncrypted = Self.text(scheme) == "ipps"
    }

    private static func text(_ characters: [CChar]) -> String {
        String(decoding: characters.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Performs a request to its end.  Canceling the task does not shorten it; each step takes at most `limit`.
    ///
    /// - Parameter sent: called with the number of bytes of `document` sent so far.
    /// - Throws: `PrinterCondition` if there is no response.
    func perform(
        _ operation: Operation, _ attributes: [Attribute], document: [UInt8]? = nil, within limit: Duration,
        sent: @escaping @Sendable (Int) -> Void = { _ in }
    ) async throws(PrinterCondition) -> Answer {
        try await queue.blocking { () throws(PrinterCondition) in
            try request(operation, attributes, document, limit / .seconds(1), sent)
        }
    }

    private func request(
        _ operation: Operation, _ attributes: [Attribute], _ document: [UInt8]?, _ seconds: Double,
        _ sent: (Int) -> Void
    ) throws(PrinterCondition) -> Answer {
        // Without this libcups asks for a password at the terminal.
        cupsSetPasswordCB2({ _, _, _, _, _ in nil }, nil)
        let encryption = isEncrypted ? HTTP_ENCRYPTION_ALWAYS : HTTP_ENCRYPTION_IF_REQUESTED
        guard
            let http = httpConnect2(
                host, port, nil, AF_UNSPEC, encryption, 1, Int32(min(seconds, 3600) * 1000), nil)
        else { throw .absent }
        defer { httpClose(http) }
        httpSetTimeout(http, seconds, { _, _ in 0 }, nil)

        let request = request(operation, attributes)
        defer { ippDelete(request) }
        let length = ippLength(request) + (document?.count ?? 0)
        var status = cupsSendRequest(http, request, resource, length)
        guard status == HTTP_STATUS_CONTINUE else { throw condition(status, http) }
        var offset = 0
        while let document, offset < document.count {
            let count = min(document.count - offset, 4096)
            status = document.withUnsafeBytes { bytes in
                cupsWriteRequestData(
                    http, bytes.baseAddress?.assumingMemoryBound(to: CChar.self).advanced(by: offset), count)
            }
            guard status == HTTP_STATUS_CONTINUE else { break }
            offset += count
            sent(offset)
        }
        // A printer that stops accepting data may have sent the reason.
        guard let response = cupsGetResponse(http, resource) else { throw condition(status, http) }
        defer { ippDelete(response) }
        return Self.answer(response)
    }

    private func request(_ operation: Operation, _ attributes: [Attribute]) -> OpaquePointer? {
        let request = ippNewRequest(operation.code)
        ippAddString(request, IPP_TAG_OPERATION, IPP_TAG_URI, "printer-uri", nil, uri)
        ippAddString(request, IPP_TAG_OPERATION, IPP_TAG_NAME, "requesting-user-name", nil, cupsUser())
        for attribute in attributes {
            let group = attribute.group == .operation ? IPP_TAG_OPERATION : IPP_TAG_JOB
            switch attribute.value {
            case .name(let text): ippAddString(request, group, IPP_TAG_NAME, attribute.name, nil, text)
            case .mimeType(let text): ippAddString(request, group, IPP_TAG_MIMETYPE, attribute.name, nil, text)
            case .integer(let number):
                ippAddInteger(request, group, IPP_TAG_INTEGER, attribute.name, Int32(clamping: number))
            case .keywords(let words):
                let texts = words.map { strdup($0) }
                defer { for text in texts { free(text) } }
                texts.map { UnsafePointer($0) }.withUnsafeBufferPointer {
                    _ = ippAddStrings(
                        request, group, IPP_TAG_KEYWORD, attribute.name, Int32(words.count), nil, $0.baseAddress)
                }
            }
        }
        return request
    }

    private static func answer(_ response: OpaquePointer) -> Answer {
        var strings: [String: [String]] = [:]
        var integers: [String: [Int]] = [:]
        var attribute = ippFirstAttribute(response)
        while let current = attribute {
            if let name = ippGetName(current).map({ String(cString: $0) }) {
                let indices = 0..<ippGetCount(current)
                switch ippGetValueTag(current) {
                case IPP_TAG_INTEGER, IPP_TAG_ENUM:
                    integers[name] = indices.map { Int(ippGetInteger(current, $0)) }
                case IPP_TAG_BOOLEAN:
                    integers[name] = indices.map { Int(ippGetBoolean(current, $0)) }
                case IPP_TAG_RESOLUTION:
                    integers[name] = indices.map { index in
                        var (y, units): (Int32, ipp_res_t) = (0, IPP_RES_PER_INCH)
                        return Int(ippGetResolution(current, index, &y, &units))
                    }
                case IPP_TAG_KEYWORD, IPP_TAG_MIMETYPE, IPP_TAG_NAME, IPP_TAG_TEXT, IPP_TAG_URI:
                    strings[name] = indices.compactMap { ippGetString(current, $0, nil).map { String(cString: $0) } }
                default: break
                }
            }
            attribute = ippNextAttribute(response)
        }
        return Answer(
            status: IPPStatus(rawValue: Int(ippGetStatusCode(response).rawValue)), strings: strings, integers: integers)
    }

    /// Returns the reason for which there is no response.
    private func condition(_ status: http_status_t, _ http: OpaquePointer) -> PrinterCondition {
        switch status {
        case HTTP_STATUS_UNAUTHORIZED, HTTP_STATUS_FORBIDDEN, HTTP_STATUS_CUPS_AUTHORIZATION_CANCELED:
            return .permissionDenied
        case HTTP_STATUS_NOT_FOUND: return .absent
        case HTTP_STATUS_SERVICE_UNAVAILABLE: return .busy
        default: break
        }
        switch httpError(http) {
        case ETIMEDOUT, EWOULDBLOCK: return .silent
        case EPIPE, ECONNRESET: return .disconnected
        default:
            switch cupsLastError() {
            case IPP_STATUS_ERROR_NOT_AUTHENTICATED, IPP_STATUS_ERROR_NOT_AUTHORIZED, IPP_STATUS_ERROR_FORBIDDEN,
                IPP_STATUS_ERROR_CUPS_AUTHENTICATION_CANCELED:
                return .permissionDenied
            case IPP_STATUS_ERROR_NOT_FOUND: return .absent
            default: return .silent
            }
        }
    }
}

extension CUPSClient.Operation {
    fileprivate var code: ipp_op_t {
        switch self {
        case .printJob: IPP_OP_PRINT_JOB
        case .getJobAttributes: IPP_OP_GET_JOB_ATTRIBUTES
        case .cancelJob: IPP_OP_CANCEL_JOB
        case .getPrinterAttributes: IPP_OP_GET_PRINTER_ATTRIBUTES
        }
    }
}

extension IPPStatus {
    var name: String { String(cString: ippErrorString(ipp_status_t(rawValue: Int32(clamping: rawValue)))) }
}

#else

/// A client for IPP requests in a program without libcups: each request fails.
struct CUPSClient: Sendable {
    init?(uri: String) {
        guard ["ipp://", "ipps://"].contains(where: uri.lowercased().hasPrefix) else { return nil }
    }

    func perform(
        _ operation: Operation, _ attributes: [Attribute], document: [UInt8]? = nil, within limit: Duration,
        sent: @escaping @Sendable (Int) -> Void = { _ in }
    ) async throws(PrinterCondition) -> Answer {
        throw .failed("this program was built without libcups, the trait CUPS of swift-contactless")
    }
}

extension IPPStatus {
    var name: String { "status" }
}

#endif
