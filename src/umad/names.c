/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of management classes, methods, attributes and statuses (IBTA 13.4 to
 * 16.3), which the management tools print.
 */
#include <infiniband/umad_str.h>
#include <infiniband/umad_sa.h>
#include <infiniband/umad_sm.h>

#include <endian.h>
#include <stdbool.h>

static const char unknown[] = "<unknown>";

struct name {
	uint16_t value;
	const char *text;
};

#define NAME_OF(table, value)                                                  \
	name_of(table, sizeof(table) / sizeof((table)[0]), value)

static const char *name_of(const struct name *names, size_t count,
			   uint16_t value)
{
	for (size_t i = 0; i < count; i++)
		if (names[i].value == value)
			return names[i].text;
	return unknown;
}

static bool is_subnet(uint8_t mgmt_class)
{
	return mgmt_class == UMAD_CLASS_SUBN_LID_ROUTED ||
	       mgmt_class == UMAD_CLASS_SUBN_DIRECTED_ROUTE;
}

const char *umad_class_str(uint8_t mgmt_class)
{
	static const struct name names[] = {
		{UMAD_CLASS_SUBN_LID_ROUTED, "Subn"},
		{UMAD_CLASS_SUBN_DIRECTED_ROUTE, "Subn"},
		{UMAD_CLASS_SUBN_ADM, "SubnAdm"},
		{UMAD_CLASS_PERF_MGMT, "Perf"},
		{UMAD_CLASS_BM, "BM"},
		{UMAD_CLASS_DEVICE_MGMT, "DevMgt"},
		{UMAD_CLASS_CM, "ComMgt"},
		{UMAD_CLASS_SNMP, "SNMP"},
		{UMAD_CLASS_DEVICE_ADM, "DevAdm"},
		{UMAD_CLASS_BOOT_MGMT, "BootMgt"},
		{UMAD_CLASS_BIS, "BIS"},
		{UMAD_CLASS_CONG_MGMT, "CongestionManagement"},
	};
	const char *text = NAME_OF(names, mgmt_class);

	if (text != unknown)
		return text;
	if ((mgmt_class >= UMAD_CLASS_VENDOR_RANGE1_START &&
	     mgmt_class <= UMAD_CLASS_VENDOR_RANGE1_END) ||
	    (mgmt_class >= UMAD_CLASS_VENDOR_RANGE2_START &&
	     mgmt_class <= UMAD_CLASS_VENDOR_RANGE2_END))
		return "Vendor";
	if (mgmt_class >= 0x10 && mgmt_class <= 0x2f)
		return "Application";
	return unknown;
}

const char *umad_method_str(uint8_t mgmt_class, uint8_t method)
{
	static const struct name common[] = {
		{UMAD_METHOD_GET, "Get"},
		{UMAD_METHOD_SET, "Set"},
		{UMAD_METHOD_SEND, "Send"},
		{UMAD_METHOD_TRAP, "Trap"},
		{UMAD_METHOD_REPORT, "Report"},
		{UMAD_METHOD_TRAP_REPRESS, "TrapRepress"},
		{UMAD_METHOD_GET_RESP, "GetResp"},
		{UMAD_METHOD_REPORT_RESP, "ReportResp"},
	};
	static const struct name sa[] = {
		{UMAD_SA_METHOD_GET_TABLE, "GetTable"},
		{UMAD_SA_METHOD_GET_TRACE_TABLE, "GetTraceTable"},
		{UMAD_SA_METHOD_GET_MULTI, "GetMulti"},
		{UMAD_SA_METHOD_DELETE, "Delete"},
		{UMAD_SA_METHOD_GET_TABLE_RESP, "GetTableResp"},
		{UMAD_SA_METHOD_GET_MULTI_RESP, "GetMultiResp"},
		{UMAD_SA_METHOD_DELETE_RESP, "DeleteResp"},
	};
	const char *text = NAME_OF(common, method);

	if (text == unknown && mgmt_class == UMAD_CLASS_SUBN_ADM)
		text = NAME_OF(sa, method);
	return text;
}

static const char *subnet_attribute(uint16_t id)
{
	static const struct name names[] = {
		{0x10, "NodeDescription"},
		{0x11, "NodeInfo"},
		{0x12, "SwitchInfo"},
		{0x14, "GUIDInfo"},
		{0x15, "PortInfo"},
		{0x16, "P_KeyTable"},
		{0x17, "SLtoVLMappingTable"},
		{0x18, "VLArbitrationTable"},
		{0x19, "LinearForwardingTable"},
		{0x1a, "RandomForwardingTable"},
		{0x1b, "MulticastForwardingTable"},
		{0x1c, "LinkSpeedWidthPairsTable"},
		{0x1d, "VendorSpecificMadsTable"},
		{0x1e, "HierarchyInfo"},
		{0x20, "SMInfo"},
		{0x30, "VendorDiag"},
		{0x31, "LedInfo"},
		{0x32, "CableInfo"},
		{0x33, "PortInfoExtended"},
	};

	return NAME_OF(names, id);
}

static const char *sa_attribute(uint16_t id)
{
	static const struct name names[] = {
		{0x11, "NodeRecord"},
		{0x12, "PortInfoRecord"},
		{0x13, "SLtoVLMappingTableRecord"},
		{0x14, "SwitchInfoRecord"},
		{0x15, "LinearForwardingTableRecord"},
		{0x16, "RandomForwardingTableRecord"},
		{0x17, "MulticastForwardingTableRecord"},
		{0x18, "SMInfoRecord"},
		{0x19, "LinkSpeedWidthPairsTableRecord"},
		{0x20, "LinkRecord"},
		{0x30, "GuidInfoRecord"},
		{0x31, "ServiceRecord"},
		{0x33, "P_KeyTableRecord"},
		{0x35, "PathRecord"},
		{0x36, "VLArbitrationTableRecord"},
		{0x38, "MCMemberRecord"},
		{0x39, "TraceRecord"},
		{0x3a, "MultiPathRecord"},
		{0x3b, "ServiceAssociationRecord"},
		{0x3c, "HierarchyInfoRecord"},
		{0x3d, "CableInfoRecord"},
		{0x3e, "PortInfoExtendedRecord"},
		{0xf3, "InformInfoRecord"},
	};

	return NAME_OF(names, id);
}

static const char *cm_attribute(uint16_t id)
{
	static const struct name names[] = {
		{0x10, "ConnectRequest"},
		{0x11, "MsgRcptAck"},
		{0x12, "ConnectReject"},
		{0x13, "ConnectReply"},
		{0x14, "ReadyToUse"},
		{0x15, "DisconnectRequest"},
		{0x16, "DisconnectReply"},
		{0x17, "ServiceIDResReq"},
		{0x18, "ServiceIDResReqResp"},
		{0x19, "LoadAlternatePath"},
		{0x1a, "AlternatePathResponse"},
		{0x1b, "SuggestAlternatePath"},
		{0x1c, "SuggestPathResponse"},
	};

	return NAME_OF(names, id);
}

const char *umad_attribute_str(uint8_t mgmt_class, __be16 attr_id)
{
	static const struct name common[] = {
		{UMAD_ATTR_CLASS_PORT_INFO, "Class Port Info"},
		{UMAD_ATTR_NOTICE, "Notice"},
		{UMAD_ATTR_INFORM_INFO, "Inform Info"},
	};
	uint16_t id = be16toh(attr_id);
	const char *text = NAME_OF(common, id);

	if (text != unknown)
		return text;
	if (is_subnet(mgmt_class))
		return subnet_attribute(id);
	if (mgmt_class == UMAD_CLASS_SUBN_ADM)
		return sa_attribute(id);
	if (mgmt_class == UMAD_CLASS_CM)
		return cm_attribute(id);
	return unknown;
}

/* Bit 0 means busy, bit 1 redirection; bits 2 to 4 say which field is invalid
 * (IBTA 13.4.7). */
const char *umad_common_mad_status_str(__be16 status)
{
	static const char *const wrong[8] = {
		[0] = "Success",
		[1] = "Bad Version",
		[2] = "Method not supported",
		[3] = "Method/Attribute combo not supported",
		[7] = "Invalid attribute/modifier field",
	};
	unsigned int bits = be16toh(status);
	const char *text = wrong[bits >> 2 & 7];

	if (bits & 1)
		return "Busy";
	if (bits & 2)
		return "Redirection required";
	return text ? text : "Success";
}

/* The upper byte has the status of the class SA (IBTA 15.2.3). */
const char *umad_sa_mad_status_str(__be16 status)
{
	static const char *const names[] = {
		"Success",
		"No Resources",
		"Request Invalid",
		"No Records",
		"Too Many Records",
		"Invalid GID",
		"Insufficient Components",
		"Request Denied",
		"Priority Suggested",
	};
	unsigned int code = be16toh(status) >> 8;

	if (code >= sizeof(names) / sizeof(names[0]))
		return "Undefined Error";
	return names[code];
}
