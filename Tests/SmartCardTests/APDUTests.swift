import SmartCard
import Testing

@Test func placeholder() {}
