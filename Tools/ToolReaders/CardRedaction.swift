package import EMVContactless
import SmartCard
package import ToolSupport

extension Redactor {
    package init(hiding inspection: CardInspection) {
        self.init(
            hiding: inspection.applications.flatMap(\.elements).map { ($0.object.tag, Array($0.object.value)) })
    }
}
