package cluster

import "helenus.io/helenus/dev/localkube/registry"

// PrivateImage is a name of the image called ref by which only pods with a pull secret get it, and
// what that Secret, of type kubernetes.io/dockerconfigjson, holds.
func (c *Cluster) PrivateImage(ref string) (image string, dockerConfig []byte, err error) {
	address := registry.Address(c.plan())
	if image, err = registry.Private(address, ref); err != nil {
		return "", nil, err
	}
	dockerConfig, err = registry.DockerConfig(address)
	return image, dockerConfig, err
}
