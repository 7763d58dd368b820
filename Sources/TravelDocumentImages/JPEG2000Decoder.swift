import COpenJPEG

/// JPEG 2000 (ISO/IEC 15444-1), through OpenJPEG.  Only this file calls it.
///
/// OpenJPEG sees only a codestream that has been parsed; the boxes of a JP2 file are not for it.
enum JPEG2000Decoder {
    static func decode(_ file: JP2File, maximumPixels: Int) throws(ImageError) -> RGBImage {
        let codestream = try Codestream(parsing: file.codestream, maximumPixels: maximumPixels)
        let colors = try ImageColors(file, codestream.components)
        return colors.image(try samples(of: codestream))
    }

    /// The library's input, and its messages.
    private final class Session {
        private let bytes: ArraySlice<UInt8>
        private var position: Int
        /// The first error, from which later ones follow.
        private(set) var complaint: String?

        init(_ bytes: ArraySlice<UInt8>) { (self.bytes, position) = (bytes, bytes.startIndex) }

        static func at(_ pointer: UnsafeMutableRawPointer?) -> Session? {
            pointer.map { Unmanaged<Session>.fromOpaque($0).takeUnretainedValue() }
        }

        /// Copies up to `count` bytes.
        ///
        /// - Returns: the number of bytes; -1 at the end.
        func read(_ buffer: UnsafeMutableRawPointer?, _ count: Int) -> Int {
            let part = bytes[position...].prefix(count)
            guard let buffer, !part.isEmpty else { return -1 }
            part.withUnsafeBytes {
                buffer.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(buffer), byteCount: $0.count)
            }
            position += part.count
            return part.count
        }

        /// - Parameter offset: from the first byte on.
        func seek(_ offset: Int64) -> Bool {
            guard (0...Int64(bytes.count)).contains(offset) else { return false }
            position = bytes.startIndex + Int(offset)
            return true
        }

        /// - Returns: the number of bytes; -1 if there are fewer.
        func skip(_ count: Int64) -> Int64 {
            let (offset, overflow) = Int64(position - bytes.startIndex).addingReportingOverflow(count)
            return !overflow && seek(offset) ? count : -1
        }

        func complain(_ message: String) {
            if complaint == nil { complaint = String(message.prefix { !$0.isNewline }) }
        }
    }

    private static func samples(of codestream: Codestream) throws(ImageError) -> [[Int32]] {
        let session = Unmanaged.passRetained(Session(codestream.bytes))
        defer { session.release() }
        guard let stream = opj_stream_default_create(OPJ_BOOL(OPJ_TRUE)) else {
            throw .damaged("no memory for a stream")
        }
        defer { opj_stream_destroy(stream) }
        opj_stream_set_user_data(stream, session.toOpaque(), nil)
        opj_stream_set_user_data_length(stream, UInt64(codestream.bytes.count))
        opj_stream_set_read_function(stream) { Session.at($2)?.read($0, $1) ?? -1 }
        opj_stream_set_skip_function(stream) { Session.at($1)?.skip($0) ?? -1 }
        opj_stream_set_seek_function(stream) { Session.at($1)?.seek($0) == true ? OPJ_TRUE : OPJ_FALSE }

        guard let codec = opj_create_decompress(OPJ_CODEC_J2K) else { throw .damaged("no memory for a decoder") }
        defer { opj_destroy_codec(codec) }
        opj_set_error_handler(
            codec, { message, session in Session.at(session)?.complain(message.map { String(cString: $0) } ?? "") },
            session.toOpaque())
        var parameters = opj_dparameters_t()
        opj_set_default_decoder_parameters(&parameters)
        var image: UnsafeMutablePointer<opj_image_t>?
        defer { opj_image_destroy(image) }
        guard opj_setup_decoder(codec, &parameters) == OPJ_TRUE, opj_read_header(stream, codec, &image) == OPJ_TRUE,
            opj_decode(codec, stream, image) == OPJ_TRUE, opj_end_decompress(codec, stream) == OPJ_TRUE,
            let decoded = image?.pointee
        else { throw .damaged(session.takeUnretainedValue().complaint ?? "no reason given") }
        return try codestream.components.enumerated().map { number, form throws(ImageError) in
            let count = form.columns.count * form.rows.count
            guard number < decoded.numcomps, case let component = decoded.comps[number], let samples = component.data,
                Int(component.w) * Int(component.h) == count
            else { throw .damaged("a component without its samples") }
            return Array(UnsafeBufferPointer(start: samples, count: count))
        }
    }
}
