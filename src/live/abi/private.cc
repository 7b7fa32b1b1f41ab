// Symbols of IBVERBS_PRIVATE_34: perftest links libmlx5 and libefa, hardware drivers that do not load
// without them. Their drivers never find hardware through us, so nothing here is ever called, except
// that they register; what is called by mistake says that it is not supported.
#include <cerrno>
#include <cstdarg>
#include <cstdint>

extern "C" {

#define WEFT_VISIBLE __attribute__((visibility("default")))

WEFT_VISIBLE bool verbs_allow_disassociate_destroy = false;
WEFT_VISIBLE void verbs_register_driver_34(const void* driver) { static_cast<void>(driver); }
WEFT_VISIBLE void __verbs_log(void* context, std::uint32_t level, const char* format, ...) {
  static_cast<void>(context);
  static_cast<void>(level);
  static_cast<void>(format);
}
WEFT_VISIBLE void* verbs_open_device(void* device, void* data) {
  static_cast<void>(device);
  static_cast<void>(data);
  errno = EOPNOTSUPP;
  return nullptr;
}
WEFT_VISIBLE void* _verbs_init_and_alloc_context() {
  errno = EOPNOTSUPP;
  return nullptr;
}
WEFT_VISIBLE void verbs_set_ops() {}
WEFT_VISIBLE void verbs_uninit_context() {}
WEFT_VISIBLE void verbs_init_cq() {}

#define WEFT_UNSUPPORTED(name) \
  WEFT_VISIBLE int name() { return EOPNOTSUPP; }

WEFT_UNSUPPORTED(execute_ioctl)
WEFT_UNSUPPORTED(ibv_read_ibdev_sysfs_file)
WEFT_UNSUPPORTED(__ioctl_final_num_attrs)
WEFT_UNSUPPORTED(ibv_cmd_advise_mr)
WEFT_UNSUPPORTED(ibv_cmd_alloc_dm)
WEFT_UNSUPPORTED(ibv_cmd_alloc_mw)
WEFT_UNSUPPORTED(ibv_cmd_alloc_pd)
WEFT_UNSUPPORTED(ibv_cmd_attach_mcast)
WEFT_UNSUPPORTED(ibv_cmd_close_xrcd)
WEFT_UNSUPPORTED(ibv_cmd_create_ah)
WEFT_UNSUPPORTED(ibv_cmd_create_counters)
WEFT_UNSUPPORTED(ibv_cmd_create_cq)
WEFT_UNSUPPORTED(ibv_cmd_create_cq_ex)
WEFT_UNSUPPORTED(ibv_cmd_create_flow)
WEFT_UNSUPPORTED(ibv_cmd_create_flow_action_esp)
WEFT_UNSUPPORTED(ibv_cmd_create_qp)
WEFT_UNSUPPORTED(ibv_cmd_create_qp_ex)
WEFT_UNSUPPORTED(ibv_cmd_create_qp_ex2)
WEFT_UNSUPPORTED(ibv_cmd_create_rwq_ind_table)
WEFT_UNSUPPORTED(ibv_cmd_create_srq)
WEFT_UNSUPPORTED(ibv_cmd_create_srq_ex)
WEFT_UNSUPPORTED(ibv_cmd_create_wq)
WEFT_UNSUPPORTED(ibv_cmd_dealloc_mw)
WEFT_UNSUPPORTED(ibv_cmd_dealloc_pd)
WEFT_UNSUPPORTED(ibv_cmd_dereg_mr)
WEFT_UNSUPPORTED(ibv_cmd_destroy_ah)
WEFT_UNSUPPORTED(ibv_cmd_destroy_counters)
WEFT_UNSUPPORTED(ibv_cmd_destroy_cq)
WEFT_UNSUPPORTED(ibv_cmd_destroy_flow)
WEFT_UNSUPPORTED(ibv_cmd_destroy_flow_action)
WEFT_UNSUPPORTED(ibv_cmd_destroy_qp)
WEFT_UNSUPPORTED(ibv_cmd_destroy_rwq_ind_table)
WEFT_UNSUPPORTED(ibv_cmd_destroy_srq)
WEFT_UNSUPPORTED(ibv_cmd_destroy_wq)
WEFT_UNSUPPORTED(ibv_cmd_detach_mcast)
WEFT_UNSUPPORTED(ibv_cmd_free_dm)
WEFT_UNSUPPORTED(ibv_cmd_get_context)
WEFT_UNSUPPORTED(ibv_cmd_modify_cq)
WEFT_UNSUPPORTED(ibv_cmd_modify_flow_action_esp)
WEFT_UNSUPPORTED(ibv_cmd_modify_qp)
WEFT_UNSUPPORTED(ibv_cmd_modify_qp_ex)
WEFT_UNSUPPORTED(ibv_cmd_modify_srq)
WEFT_UNSUPPORTED(ibv_cmd_modify_wq)
WEFT_UNSUPPORTED(ibv_cmd_open_qp)
WEFT_UNSUPPORTED(ibv_cmd_open_xrcd)
WEFT_UNSUPPORTED(ibv_cmd_poll_cq)
WEFT_UNSUPPORTED(ibv_cmd_post_recv)
WEFT_UNSUPPORTED(ibv_cmd_post_send)
WEFT_UNSUPPORTED(ibv_cmd_post_srq_recv)
WEFT_UNSUPPORTED(ibv_cmd_query_context)
WEFT_UNSUPPORTED(ibv_cmd_query_device_any)
WEFT_UNSUPPORTED(ibv_cmd_query_mr)
WEFT_UNSUPPORTED(ibv_cmd_query_port)
WEFT_UNSUPPORTED(ibv_cmd_query_qp)
WEFT_UNSUPPORTED(ibv_cmd_query_srq)
WEFT_UNSUPPORTED(ibv_cmd_read_counters)
WEFT_UNSUPPORTED(ibv_cmd_reg_dm_mr)
WEFT_UNSUPPORTED(ibv_cmd_reg_dmabuf_mr)
WEFT_UNSUPPORTED(ibv_cmd_reg_mr)
WEFT_UNSUPPORTED(ibv_cmd_req_notify_cq)
WEFT_UNSUPPORTED(ibv_cmd_rereg_mr)
WEFT_UNSUPPORTED(ibv_cmd_resize_cq)

// What a connection manager over the kernel would ask for: there is no kernel side to copy from.
WEFT_UNSUPPORTED(ibv_copy_ah_attr_from_kern)
WEFT_UNSUPPORTED(ibv_copy_path_rec_from_kern)
WEFT_UNSUPPORTED(ibv_copy_path_rec_to_kern)
WEFT_UNSUPPORTED(ibv_copy_qp_attr_from_kern)

}  // extern "C"
