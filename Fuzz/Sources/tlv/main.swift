import EMVContactless
import Fuzzing
import SmartCard

// The input is BER-TLV, a DOL, an AFL, a track, an APDU, an ATR: it is read to its end, or refused with an offset.

fuzz { bytes in
    do throws(TLVError) {
        for object in try TLVList(bytes) { _ = "\(Annotation(object))" }
    } catch {
        precondition((0...bytes.count).contains(error.offset))
    }
    _ = try? DataObjectList(bytes).value { _ in bytes }
    _ = try? ApplicationFileLocator(bytes)
    _ = try? Track2(bytes)
    _ = try? CommandAPDU(bytes)
    _ = ATR(bytes).contactless
}
