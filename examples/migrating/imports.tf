# Takes what exists into the state. To be deleted after the first apply.

variable "endpoint_id" {
  type = string
}

variable "qwen25_id" {
  type = string
}

variable "qwen35_id" {
  type = string
}

import {
  to = sluice_endpoint.chat
  id = var.endpoint_id
}

import {
  to = sluice_deployment.qwen25
  id = "${var.endpoint_id}/${var.qwen25_id}"
}

import {
  to = sluice_deployment.qwen35
  id = "${var.endpoint_id}/${var.qwen35_id}"
}
