import SmartCard
